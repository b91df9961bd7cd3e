"""Default values of public parameters."""

from __future__ import annotations

import datetime as dt

__all__ = [
    "DEFAULT_COMMIT_TIMEOUT",
    "DEFAULT_CONFLICT_RETRIES",
    "DEFAULT_MAX_BYTES_PER_FILE",
    "DEFAULT_MAX_ROWS_PER_FILE",
    "DEFAULT_MAX_ROWS_PER_GROUP",
    "DEFAULT_RETRY_TIMEOUT",
]

#: Time after which a commit makes no further attempt.
DEFAULT_COMMIT_TIMEOUT = dt.timedelta(seconds=1800)
#: Number of repetitions of a change that conflicts with other writers, and how long to go on with them.
DEFAULT_CONFLICT_RETRIES = 10
DEFAULT_RETRY_TIMEOUT = dt.timedelta(seconds=30)
#: Limits of a data file: rows, bytes, and rows of a batch of legacy files.
DEFAULT_MAX_ROWS_PER_FILE = 1024 * 1024
DEFAULT_MAX_BYTES_PER_FILE = 90 * 1024**3
DEFAULT_MAX_ROWS_PER_GROUP = 1024
