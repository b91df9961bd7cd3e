"""Environment variable that makes scans compute everything twice; see `lance_dataset.scan.checking`."""

from __future__ import annotations

import os

__all__ = ["is_checking"]

_VARIABLE = "LANCE_CHECK_SCANS"


def is_checking() -> bool:
    """Return True if ``LANCE_CHECK_SCANS`` is 1: filtered scans compute everything twice."""
    return os.environ.get(_VARIABLE) == "1"
