"""Settings shared by all tests.

Hypothesis profiles: ``ci`` (the default) is quick and tries the same examples every time, ``long`` looks for new
ones. Choose with ``HYPOTHESIS_PROFILE=long make test``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.stores.s3_server import s3_server  # noqa: F401 - a fixture

_CHECKS_OFF = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "ci", max_examples=30, derandomize=True, deadline=None, print_blob=True, suppress_health_check=_CHECKS_OFF
)
settings.register_profile("long", max_examples=1000, deadline=None, print_blob=True, suppress_health_check=_CHECKS_OFF)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def stopped_traces() -> Iterator[None]:
    """Stop the callback and the file for events after a test: an example of the guide sets one for its process."""
    yield
    tracing = sys.modules.get("lance_dataset.api.tracing")
    if tracing is None or (tracing._callback is None and tracing._chrome is None):
        return
    if tracing._chrome is not None:
        tracing._chrome.end()
    tracing._callback = tracing._chrome = None
    sys.modules["lance_dataset.events"]._forget()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Test by test to the process that is free; but there is only one Spark, in the process that began with it."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith("tests/spark/") else nodeid

    return Scheduling(config, log)
