"""Memory limit for tests of hostile files."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def little_memory() -> Iterator[None]:
    """A forged length becomes a MemoryError, which no test expects, instead of the end of the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)
