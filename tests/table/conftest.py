"""Fixtures: empty tables in memory and on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_dataset.io.base import ObjectStore
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore


@pytest.fixture(params=["memory", "local"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ObjectStore, str]:
    return (MemoryStore(), "/t") if request.param == "memory" else (LocalStore(fsync=False), f"{tmp_path}/t")
