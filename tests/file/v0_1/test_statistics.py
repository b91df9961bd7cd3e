"""Tests of statistics of legacy (0.1) files: bytes below nulls, and batches of nulls only."""

from __future__ import annotations

from pathlib import Path

import lance as reference
import pyarrow as pa
import pytest
from support.files.legacy_files import open_file, write_dataset_file

import lance_dataset as lance
from lance_dataset.file.v0_1.read.statistics import read_zones


def _hidden(valid: list[bool]) -> pa.Array:
    """Return strings with bytes under the nulls."""
    shown = pa.array(["aa", "bb", "zz", "cc"])
    return pa.Array.from_buffers(pa.string(), 4, [pa.array(valid).buffers()[1], *shown.buffers()[1:]])


@pytest.mark.parametrize("valid", [[True, True, False, True], [False] * 4, [False, True, False, False]])
def test_the_reference_keeps_bytes_under_nulls(valid: list[bool], tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    reference.write_dataset(pa.table({"s": _hidden(valid)}), path, data_storage_version="legacy")
    opened, expected = lance.dataset(path), reference.dataset(path)
    assert opened.to_table() == expected.to_table()
    for text in ("s = 'zz'", "s > 'bb'", "s is null", "s is not null"):
        found = opened.to_table(filter=text)
        assert found == opened.scanner(filter=text, use_stats=False).to_table()
        assert found == expected.scanner(filter=text, use_stats=False).to_table()


@pytest.mark.parametrize("mapped", ["true", "false"])
def test_batches_of_nulls_alone_are_known(mapped: str, tmp_path: Path) -> None:
    table = pa.table({"s": pa.array([None, None, "a", "b", None, "c", None, None], pa.string())})
    opened = open_file(write_dataset_file(tmp_path / "t", table, max_rows_per_group=2), mapped)
    zones = read_zones(opened, opened.schema.fields[0])
    assert zones is not None
    assert zones.may_be_valid.tolist() == [False, True, True, False]
    assert zones.may_be_null.tolist() == [True, False, True, True]
    assert zones.minimum.to_pylist() == [None, "a", None, None]
