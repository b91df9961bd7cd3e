"""Losses of legacy files: nulls of most types, and the difference between null and empty strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

__all__ = ["LOST_NULLS", "NULLED_EMPTIES", "WRONG", "assert_same_but_lost", "losses"]

LOST_NULLS = "nulls are lost"
NULLED_EMPTIES = "empty strings become null"
WRONG = "values differ"


def losses(read: pa.Table, written: pa.Table) -> set[str]:
    """Return how the rows that were read differ from those that were written."""
    if read.schema.types != written.schema.types or read.num_rows != written.num_rows:
        return {WRONG}
    return set(_losses(read.to_pylist(), written.to_pylist()))


def _losses(read: Any, written: Any) -> Iterator[str]:
    if written is None:
        if read is not None:
            yield LOST_NULLS
    elif isinstance(written, dict) and isinstance(read, dict):
        for name, value in written.items():
            yield from _losses(read[name], value)
    elif isinstance(written, list | tuple) and isinstance(read, list | tuple) and len(read) == len(written):
        for left, right in zip(read, written, strict=True):
            yield from _losses(left, right)
    elif read is None and written in ("", b""):
        yield NULLED_EMPTIES
    elif repr(read) != repr(written):
        yield WRONG


def assert_same_but_lost(read: pa.Table, written: pa.Table) -> None:
    """Assert that rows differ from the written ones only in what legacy files lose."""
    assert read.column_names == written.column_names
    for name in written.column_names:
        assert WRONG not in losses(read.select([name]), written.select([name])), name
