"""Tests of columns of many small fragments that are read together."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import CorruptFileError
from lance_dataset.file.structural.read import column_parts

ROWS, FRAGMENTS = 40, 24


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what is read together with columns that are read by themselves."""
    monkeypatch.setenv("LANCE_CHECK_SCANS", "1")


def table(rows: int = ROWS * FRAGMENTS) -> pa.Table:
    rng = np.random.default_rng(7)
    nulls = rng.random(rows) < 0.1
    some = np.where(np.arange(rows) // ROWS % 3 == 1, nulls, np.False_)
    words = [f"{value:x}" for value in rng.integers(0, 1 << 40, rows).tolist()]
    columns: dict[str, pa.Array] = {
        "id": pa.array(np.arange(rows)),
        "packed": pa.array(rng.integers(0, 1 << 9, rows, np.int32)),
        "real": pa.array(rng.standard_normal(rows)),
        "runs": pa.array(np.repeat(rng.integers(0, 99, rows // 20), 20)),
        "time": pa.array(rng.integers(0, 1 << 60, rows), pa.timestamp("us")),
        "price": pa.array([Decimal(value).scaleb(-2) for value in rng.integers(0, 9999, rows).tolist()]),
        "fixed": pa.array([rng.bytes(4) for _ in range(rows)], pa.binary(4)),
        "text": pa.array(words),
        "large": pa.array(words, pa.large_string()),
        "bytes": pa.array([rng.bytes(size) for size in rng.integers(0, 9, rows).tolist()]),
        "empty": pa.array([""] * rows),
        "colour": pa.array(["red", "green"] * (rows // 2)),
        "some_colour": pa.array(["red", "green"] * (rows // 2), mask=some),
        "nulls": pa.array(rng.integers(0, 99, rows), mask=nulls),
        "some": pa.array(rng.integers(0, 99, rows), mask=some),
        "some_text": pa.array(words, mask=some),
        "flag": pa.array(rng.random(rows) < 0.5),
        "constant": pa.array([3] * rows),
        "pair": pa.array([{"a": value} for value in range(rows)]),
        "list": pa.array([[value] * (value % 3) for value in range(rows)]),
    }
    return pa.table(columns)


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2", "2.1 by the reference", "2.2 by the reference"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a table of small fragments of two sizes, some with deleted rows, one with no live row."""
    where = str(tmp_path_factory.mktemp("small") / "t.lance")
    version, _, by = request.param.partition(" ")
    write = lance.write_dataset if by else lance_dataset.write_dataset
    written = table()
    write(written[: ROWS * 20], where, data_storage_version=version, max_rows_per_file=ROWS)
    write(written[ROWS * 20 :], where, max_rows_per_file=2 * ROWS, mode="append")
    lance.dataset(where).delete(f"id % 7 = 3 AND id > {5 * ROWS} OR id >= {8 * ROWS} AND id < {9 * ROWS}")
    return where


@pytest.mark.parametrize("where", [None, "id < 3", "packed > 500", "text > 'f' AND real > 0", "some IS NULL", "id < 0"])
def test_scans_equal_those_of_the_reference(path: str, where: str | None) -> None:
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for _ in range(2):  # the second one finds open files
        assert ours.to_table(filter=where).equals(theirs.to_table(filter=where))
    assert ours.count_rows(filter=where) == theirs.count_rows(filter=where)
    batches = list(ours.to_batches(filter=where, batch_size=100))
    assert pa.Table.from_batches(batches, ours.schema).equals(theirs.to_table(filter=where))
    limited = {"columns": ["text", "id"], "filter": where, "limit": 70, "offset": 50}
    assert ours.to_table(**limited).equals(theirs.to_table(**limited))


def test_columns_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lance_dataset.write_dataset(table(), str(tmp_path / "t"), max_rows_per_file=ROWS)
    monkeypatch.delenv("LANCE_CHECK_SCANS")
    found: dict[str, list[tuple[int, int]]] = {}

    def join_parts(parts: list[column_parts.ColumnPart], field: object, grammar: object) -> object:
        joined = original(parts, field, grammar)  # type: ignore[arg-type]
        found[field.name] = [(first, last) for first, last, _ in joined]  # type: ignore[attr-defined]
        return joined

    original = column_parts.join_parts
    monkeypatch.setattr(column_parts, "join_parts", join_parts)
    dataset = lance_dataset.dataset(str(tmp_path / "t"))
    assert dataset.to_table().equals(table())
    apart = {"constant", "empty"}  # pages without buffers
    assert {name: joined for name, joined in found.items() if joined != [(0, FRAGMENTS)]}.keys() == apart
    assert set(found) == set(table().column_names) - {"pair", "list"}


def test_fragments_without_a_column_and_with_other_versions(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    written = table(ROWS * 8)
    dataset = lance_dataset.write_dataset(written, path, max_rows_per_file=ROWS)
    dataset.add_columns({"sum": "id + packed"})
    lance_dataset.write_dataset(written.select(["id", "text"]), path, mode="append", max_rows_per_file=ROWS)
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    assert ours.to_table().equals(theirs.to_table())
    assert ours.to_table(filter="sum > 300").equals(theirs.to_table(filter="sum > 300"))


def test_a_damaged_page_is_reported_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance_dataset.write_dataset(table().select(["id", "text"]), str(path), max_rows_per_file=ROWS)
    fragment = lance_dataset.dataset(str(path)).get_fragments()[7]
    (file,) = fragment.data_files()
    place = path / "data" / file.path
    data = bytearray(place.read_bytes())
    at = data.find(table()["text"][7 * ROWS].as_py().encode())
    data[at] = 0xFF
    place.write_bytes(data)
    dataset = lance_dataset.dataset(str(path))
    assert dataset.to_table(columns=["id"]).num_rows == ROWS * FRAGMENTS
    with pytest.raises(CorruptFileError, match=Path(file.path).name):
        dataset.to_table()
