"""Tests of takes from tables of many columns, the first of which read the columns together."""

from __future__ import annotations

import warnings
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import CorruptFileError, RowIndexError
from lance_dataset.read import fragment_reader, row_taker

ROWS, FRAGMENTS = 700, 2
PICKS = [[5], [0, 3, 3, 699, 700, 1399], [1399, 0, 700, 0, 699], list(range(3, 1400, 9)), list(range(1399, 0, -7))]


def table() -> pa.Table:
    rng, rows = np.random.default_rng(3), ROWS * FRAGMENTS
    columns: dict[str, pa.Array] = {"text": pa.array([f"{value:x}" for value in range(rows)])}
    for number in range(17):
        columns[f"packed{number}"] = pa.array(rng.integers(0, 1 << (3 + number % 12), rows, np.int32))
        columns[f"real{number}"] = pa.array(rng.random(rows, np.float32))
        columns[f"flag{number}"] = pa.array(rng.random(rows) < 0.3)
        columns[f"gaps{number}"] = pa.array(rng.integers(0, 99, rows), mask=rng.random(rows) < 0.1)
    columns["pair"] = pa.array([{"a": value} for value in range(rows)])
    return pa.table(columns)


@pytest.fixture(scope="module", params=["legacy", "2.0", "2.1", "2.2"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    where = str(tmp_path_factory.mktemp("wide") / "t.lance")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # legacy files lose nulls
        lance.write_dataset(table(), where, data_storage_version=request.param, max_rows_per_file=ROWS)
    return where


@pytest.mark.parametrize("rows", PICKS, ids=len)
def test_first_and_later_takes_equal_those_of_the_reference(path: str, rows: list[int]) -> None:
    ours, expected = lance_dataset.dataset(path), lance.dataset(path).take(rows)
    for _ in range(row_taker._EARLY_TAKES + 2):
        assert ours.take(rows).equals(expected)
    names = [name for name in reversed(expected.column_names) if name != "real5"]
    fresh = lance_dataset.dataset(path)
    assert fresh.take(rows, columns=names).equals(expected.select(names))
    assert fresh._take_rows([(row // ROWS << 32) + row % ROWS for row in rows]).equals(expected)
    fragment, inside = fresh.get_fragments()[0], [row for row in rows if row < ROWS]
    assert fragment.take(inside).equals(lance.dataset(path).take(inside))


def test_columns_are_not_opened_for_the_first_takes(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    original = fragment_reader.FragmentReader._open_column

    def counted(self: fragment_reader.FragmentReader, field: lance_dataset.types.Field) -> object:
        opened.append(field.name)
        return original(self, field)

    monkeypatch.setattr(fragment_reader.FragmentReader, "_open_column", counted)
    ds = lance_dataset.dataset(path)
    for _ in range(row_taker._EARLY_TAKES):
        ds.take([1, 2])
    assert {"text", "pair", "real0"} - set(opened) == {"real0"}
    ds.take([1, 2])
    assert "real0" in opened, "there are two fragments"


@pytest.mark.parametrize(("version", "copied"), [("legacy", True), ("2.0", True), ("2.2", False)])
def test_single_values_of_one_fragment_are_copied_by_all_takes(tmp_path: Path, version: str, copied: bool) -> None:
    kept = table().select([name for name in table().column_names if name.startswith(("packed", "real", "flag"))])
    ds = lance_dataset.write_dataset(kept, tmp_path / "t.lance", data_storage_version=version)
    for _ in range(row_taker._EARLY_TAKES + 2):
        assert ds.take([7, 5]).equals(kept.take([7, 5]))
    assert (len(ds.snapshot.reader.fragments[0]._columns) == 0) is copied


def test_deleted_rows(tmp_path: Path) -> None:
    ds = lance_dataset.write_dataset(table(), tmp_path / "t.lance", max_rows_per_file=ROWS)
    ds.delete("packed3 < 20")
    kept = table().filter(pa.compute.greater_equal(table()["packed3"], 20))
    fresh = lance_dataset.dataset(tmp_path / "t.lance")
    rows = [0, kept.num_rows - 1, 5, 5, 600]
    assert fresh.take(rows).equals(kept.take(rows))


def test_rows_that_do_not_exist(path: str) -> None:
    for rows in ([1400], [0, 1400], [1 << 40]):
        with pytest.raises(RowIndexError, match="out of range"):
            lance_dataset.dataset(path).take(rows)


def test_damage_is_reported_with_its_column(tmp_path: Path) -> None:
    written = table().select([name for name in table().column_names if name.startswith(("packed", "real", "gaps"))])
    path = tmp_path / "t.lance"
    lance_dataset.write_dataset(written, path)
    file = next((path / "data").iterdir())
    from lance_dataset.file.reader import open_metadata
    from lance_dataset.io.local import LocalStore

    index = written.column_names.index("packed7")
    position, _ = open_metadata(LocalStore().open_input(str(file))).column(index).pages[0].buffers[1]
    data = bytearray(file.read_bytes())
    data[position : position + 8] = b"\xff" * 8
    file.write_bytes(bytes(data))
    with pytest.raises(CorruptFileError, match=rf"column {index} .'packed7'.*page 0"):
        lance_dataset.dataset(path).take([0, 9])
