"""Tests of scans in batches whose windows are decoded in one call: random tables, batches that are kept, and limits."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.scan import batch_windows
from lance_dataset.scan.batch_windows import BatchWindows

ROWS, FRAGMENT = 60_000, 25_000
VERSIONS = ["2.0", "2.1", "2.2"]


def table(seed: int, rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(seed)
    words = np.array(["", "one", "grün", "a longer text than others", "x" * 40])
    few, holes = rng.integers(0, 5, rows), pa.array(rng.random(rows) < 0.1)
    return pa.table(
        {
            "number": rng.integers(0, 1 << 40, rows),
            "small": rng.integers(0, 100, rows).astype(np.int16),
            "hole": pa.array(rng.integers(0, 1000, rows), pa.int32(), mask=np.asarray(holes)),
            "real": rng.random(rows),
            "flag": rng.random(rows) < 0.3,
            "word": words[few],
            "wide": pa.array(words[few[::-1]], pa.large_string()),
            "text": [f"{words[few[i]]} {i * 7919 % 100_003}" for i in range(rows)],
            "bytes": pa.array([b"ab" * (i % 7) if i % 11 else None for i in range(rows)]),
            "price": pa.array(rng.integers(0, 10_000, rows)).cast(pa.decimal128(21, 2)),
            "day": pa.array(rng.integers(0, 3000, rows).astype(np.int32)).cast(pa.date32()),
        }
    )


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_windows, "_WINDOW_BYTES", 300_000)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of rows of windows that are decoded in one call."""
    found: list[int] = []
    decode = BatchWindows.decode

    def counted(self: BatchWindows, *arguments: object) -> object:
        rows = decode(self, *arguments)  # type: ignore[arg-type]
        if rows is not None:
            found.append(rows.num_rows)
        return rows

    monkeypatch.setattr(BatchWindows, "decode", counted)
    return found


@pytest.fixture(scope="module", params=[*VERSIONS, "pylance"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pa.Table]:
    path, wanted = str(tmp_path_factory.mktemp("batches") / "table"), table(1)
    if request.param == "pylance":
        lance.write_dataset(wanted, path, max_rows_per_file=FRAGMENT)
    else:
        lance_dataset.write_dataset(wanted, path, data_storage_version=request.param, max_rows_per_file=FRAGMENT)
    return path, wanted


@pytest.mark.parametrize("batch_size", [None, 1000, 4096, 30_000])
def test_the_same_rows(stored: tuple[str, pa.Table], batch_size: int | None, decoded: list[int]) -> None:
    path, wanted = stored
    batches = list(lance_dataset.dataset(path).to_batches(batch_size=batch_size))
    for batch in batches:
        batch.validate(full=True)
    assert pa.Table.from_batches(batches).equals(wanted)
    assert [batch.num_rows for batch in batches] == [
        batch.num_rows for batch in lance.dataset(path).to_batches(batch_size=batch_size)
    ]
    if (batch_size or 0) < 10_000:
        assert sum(decoded) in (0, ROWS)


def test_windows_are_decoded_in_one_call(tmp_path: Path, decoded: list[int]) -> None:
    lance_dataset.write_dataset(table(2), tmp_path / "t", max_rows_per_file=FRAGMENT)
    dataset = lance_dataset.dataset(tmp_path / "t")
    assert sum(batch.num_rows for batch in dataset.to_batches()) == sum(decoded) == ROWS
    decoded.clear()
    for columns in (["real"], ["number", "word"], dataset.schema.names[:9]):
        found = pa.Table.from_batches(list(dataset.to_batches(columns=columns)))
        assert found.equals(table(2).select(columns))
    for options in ({"filter": "small < 50"}, {"limit": 20_000}, {"offset": 5}, {"with_row_id": True}):
        decoded.clear()
        list(dataset.to_batches(**options))  # type: ignore[arg-type]
        assert not decoded


def test_deleted_rows(tmp_path: Path, decoded: list[int]) -> None:
    dataset = lance_dataset.write_dataset(table(3), tmp_path / "t", max_rows_per_file=FRAGMENT)
    dataset.delete("small < 3 OR (number % 7 = 1)")
    dataset.delete("day < date '1970-02-01'")
    found = pa.Table.from_batches(list(dataset.to_batches()))
    assert found.equals(pa.Table.from_batches(list(lance.dataset(tmp_path / "t").to_batches())))
    assert sum(decoded) == found.num_rows


def test_batches_that_are_kept_stay_the_same(tmp_path: Path) -> None:
    wanted = table(4)
    lance_dataset.write_dataset(wanted, tmp_path / "t", max_rows_per_file=FRAGMENT)
    kept: list[pa.RecordBatch] = []
    row = 0
    for batch in lance_dataset.dataset(tmp_path / "t").to_batches(batch_size=1024):
        assert pa.Table.from_batches([batch]).equals(wanted.slice(row, batch.num_rows))
        row += batch.num_rows
        if row % 3 == 0:
            kept.append(batch)
    columns = [batch.column("text") for batch in kept]
    same = [pa.array(column.to_pylist()) for column in columns]
    del kept
    list(lance_dataset.dataset(tmp_path / "t").to_batches())
    assert all(column.equals(other) for column, other in zip(columns, same, strict=True))


def test_the_order_can_be_left_to_the_scan(tmp_path: Path) -> None:
    wanted = table(5)
    lance_dataset.write_dataset(wanted, tmp_path / "t", max_rows_per_file=FRAGMENT)
    dataset = lance_dataset.dataset(tmp_path / "t")
    batches = dataset.to_batches(scan_in_order=False, batch_readahead=7, batch_size=500)
    found = pa.Table.from_batches(list(batches))
    assert sorted(found["text"].to_pylist()) == sorted(wanted["text"].to_pylist())


def test_checked_scans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoded: list[int]) -> None:
    monkeypatch.setenv("LANCE_CHECK_SCANS", "1")
    lance_dataset.write_dataset(table(6), tmp_path / "t")
    dataset = lance_dataset.dataset(tmp_path / "t")
    assert pa.Table.from_batches(list(dataset.to_batches())).equals(table(6))
    dataset.delete("small = 3")
    list(dataset.to_batches())
    assert decoded


def test_a_stream_that_ends_early(tmp_path: Path) -> None:
    lance_dataset.write_dataset(table(7), tmp_path / "t")
    batches = iter(lance_dataset.dataset(tmp_path / "t").to_batches(batch_size=100))
    first = next(batches)
    del batches
    assert pa.Table.from_batches([first]).equals(table(7).slice(0, 100))
