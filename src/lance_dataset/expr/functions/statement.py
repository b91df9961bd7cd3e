"""Start time of a statement, which `now()` and similar functions return everywhere in one filter."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pyarrow as pa

from lance_dataset.expr.function import Function

__all__ = ["ALIASES", "FUNCTIONS", "one_statement", "statement_time"]

_DAY = 86_400 * 10**9

_MOMENT: ContextVar[int | None] = ContextVar("statement_time", default=None)


@contextmanager
def one_statement() -> Iterator[None]:
    """Freeze the statement time within a block."""
    token = _MOMENT.set(time.time_ns() if _MOMENT.get() is None else _MOMENT.get())
    try:
        yield
    finally:
        _MOMENT.reset(token)


def statement_time() -> int:
    """Return the nanoseconds since the epoch, in UTC, when the current statement began."""
    moment = _MOMENT.get()
    return time.time_ns() if moment is None else moment


def _now() -> pa.Scalar:
    return pa.scalar(statement_time(), pa.int64()).cast(pa.timestamp("ns"))


def _current_date() -> pa.Scalar:
    return pa.scalar(statement_time() // _DAY, pa.int32()).cast(pa.date32())


def _current_time() -> pa.Scalar:
    return pa.scalar(statement_time() % _DAY, pa.int64()).cast(pa.time64("ns"))


FUNCTIONS = [
    Function("now", (), _now),
    Function("current_date", (), _current_date),
    Function("current_time", (), _current_time),
]
ALIASES = {"today": "current_date", "current_timestamp": "now"}
