"""Checks that this package and the reference see the same dataset."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_dataset
from support.tables.equality import assert_same

__all__ = ["assert_both_read", "counters"]


def counters(dataset: Any) -> list[tuple[int, dict[str, str]]]:
    """Return numbers and statistics of all versions."""
    return [(entry["version"], entry["metadata"]) for entry in dataset.versions()]


def assert_both_read(path: Path | str, expected: pa.Table | None = None, seed: int = 0) -> pa.Table:
    """Assert that everything readable is equal in both libraries; return the rows.

    Parameters
    ----------
    path
        The dataset.
    expected
        Rows, in order, that both must return.
    seed
        Seed of the rows taken at random.
    """
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    assert ours.version == theirs.version
    assert ours.latest_version == theirs.latest_version
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.has_stable_row_ids == theirs.has_stable_row_ids
    assert counters(ours) == counters(theirs)
    for left, right in zip(ours.versions(), theirs.versions(), strict=True):
        # The reference converts through a float, so it is sometimes off by a microsecond.
        assert abs(left["timestamp"] - right["timestamp"]) <= dt.timedelta(microseconds=1)
    assert ours.count_rows() == theirs.count_rows()
    table = ours.to_table()
    assert_same(table, theirs.to_table())
    if expected is not None:
        assert_same(table, expected)
    system = ["_rowid", "_rowaddr"]
    if ours.has_stable_row_ids:
        system += ["_row_created_at_version", "_row_last_updated_at_version"]
    first = ours.schema.names[0]
    assert_same(ours.to_table(columns=[first, *system]), theirs.to_table(columns=[first, *system]))
    options = {"with_row_id": True, "with_row_address": True}
    assert_same(ours.to_table(**options), theirs.to_table(**options))
    assert_same(
        ours.to_table(columns=[first, "_rowaddr"], include_deleted_rows=True, with_row_id=True),
        theirs.to_table(columns=[first, "_rowaddr"], include_deleted_rows=True, with_row_id=True),
    )
    assert [len(item.deletion_file() or "") > 0 for item in ours.get_fragments()] == [
        len(item.deletion_file() or "") > 0 for item in theirs.get_fragments()
    ]
    if ours.count_rows():
        rows = np.random.default_rng(seed).integers(0, ours.count_rows(), 30)
        assert_same(ours.take(rows), theirs.take(rows))
        assert_same(ours.take(rows), table.take(rows))
    for left, right in zip(ours.get_fragments(), theirs.get_fragments(), strict=True):
        assert left.fragment_id == right.fragment_id
        assert left.count_rows() == right.count_rows()
        assert left.physical_rows == right.physical_rows
    ours.validate()
    return table
