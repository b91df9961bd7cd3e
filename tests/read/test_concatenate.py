"""Tests of rows that are hard to join into one array: deleted rows, clashing dictionaries, huge values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.column import NullColumn
from lance_dataset.read.concatenate import UnjoinableError, bisected, keep_rows, take_chunked
from lance_dataset.scan import strategy
from lance_dataset.table.manifest import encode_manifest

INT8_WORDS = pa.dictionary(pa.int8(), pa.string())


def int8_words(prefix: str, count: int = 100) -> pa.Table:
    """Return distinct words in an int8 dictionary."""
    words = pa.array([f"{prefix}{i}" for i in range(count)])
    column = pa.DictionaryArray.from_arrays(pa.array(range(count), pa.int8()), words)
    return pa.table({"word": column, "i": range(count)})


@pytest.fixture
def clashing(tmp_path: Path) -> Any:
    """Make three fragments of 100 words each, 300 in all."""
    path = tmp_path / "words"
    for prefix in "abc":
        lance_dataset.write_dataset(int8_words(prefix), path, mode="append")
    return lance_dataset.dataset(path)


@pytest.fixture
def huge_chunks() -> pa.ChunkedArray:
    """Return 3.6 GB of text that takes address space only, as its pages are never touched."""
    size = 1_200_000_000
    zeros = pa.py_buffer(np.zeros(size, np.uint8))
    offsets = pa.py_buffer(np.array([0, size // 2, size], np.int32))
    big = pa.Array.from_buffers(pa.string(), 2, [None, offsets, zeros])
    return pa.chunked_array([big, pa.array(["x", "y", "z"]), big, big])


# -- deleted rows ------------------------------------------------------------------------------------------------


@pytest.fixture
def poisoned(tmp_path: Path) -> Any:
    """Make a table with a deleted row whose text cannot be cast and whose number is a zero divisor."""
    data = pa.table({"s": ["1", "x", "3"], "n": [1, 0, 2]})
    ds = lance_dataset.write_dataset(data, tmp_path / "poisoned")
    ds.delete("s = 'x'")
    return ds


@pytest.mark.parametrize(("filter", "kept"), [("cast(s as int) > 1", ["3"]), ("10 / n > 5", ["1"]), ("6/n > 1", None)])
def test_filter_does_not_see_deleted_rows(poisoned: Any, filter: str, kept: list[str] | None) -> None:
    kept = ["1", "3"] if kept is None else kept
    assert poisoned.to_table(filter=filter)["s"].to_pylist() == kept
    assert poisoned.to_table(filter=filter, columns={"v": "cast(s as int)"})["v"].to_pylist() == [int(s) for s in kept]
    assert poisoned.count_rows(filter) == len(kept)
    poisoned.delete(filter)
    assert poisoned.to_table()["s"].to_pylist() == [s for s in ["1", "3"] if s not in kept]


def test_filter_on_live_rows_still_fails(poisoned: Any) -> None:
    with pytest.raises(pa.ArrowInvalid):
        poisoned.to_table(filter="cast(s as int) / 0 > 1")


def test_fragment_row_offsets_count_from_the_dataset(tmp_path: Path) -> None:
    ds = lance_dataset.write_dataset(pa.table({"a": range(10)}), tmp_path / "d", max_rows_per_file=5)
    ds.delete("a = 1")
    assert ds.get_fragments()[1].take([0, 3], columns=["_rowoffset"]).to_pydict() == {"_rowoffset": [4, 7]}
    assert lance_dataset.dataset(ds.uri).get_fragments()[1].delete("_rowoffset = 5").deletion_file.num_deleted_rows == 1


# -- huge values -------------------------------------------------------------------------------------------------


def test_keeping_rows_leaves_whole_chunks_alone(huge_chunks: pa.ChunkedArray) -> None:
    kept = keep_rows(huge_chunks.chunks, np.array([0, 1, 2, 4, 5, 6]))
    assert [len(chunk) for chunk in kept] == [2, 2, 2]
    assert kept[1].to_pylist() == ["x", "z"]
    for chunk in (kept[0], kept[2]):
        assert chunk.buffers()[2].address == huge_chunks.chunk(0).buffers()[2].address


def test_taking_a_few_rows_beside_huge_chunks(huge_chunks: pa.ChunkedArray) -> None:
    assert [array.to_pylist() for array in take_chunked(huge_chunks, np.array([4, 2]), "s")] == [["z", "x"]]


def test_bisected_reads_halves_until_they_fit() -> None:
    def work(start: int, stop: int) -> tuple[int, int]:
        if stop - start > 3:
            raise UnjoinableError("too many", oversize=True)
        return start, stop

    assert list(bisected(work, 0, 10)) == [(0, 2), (2, 5), (5, 7), (7, 10)]


def test_batches_of_huge_rows_are_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(strategy, "MAX_BATCH_BYTES", 1 << 20)
    rng = np.random.default_rng(0)
    values = [rng.bytes(1 << 14) for _ in range(300)]
    ds = lance_dataset.write_dataset(pa.table({"v": values, "i": range(300)}), tmp_path / "d")
    batches = list(ds.to_batches())
    assert pa.Table.from_batches(batches)["v"].to_pylist() == values
    assert {batch.num_rows for batch in batches[:-1]} == {63}
    assert {batch.num_rows for batch in list(ds.to_batches(batch_size=20))} == {20}
    assert [batch.num_rows for batch in ds.to_batches(["i"], batch_size=250, strict_batch_size=True)] == [250, 50]
    assert ds.count_rows("i > 40") == 259


@pytest.mark.parametrize("rows", [1, 2])
def test_more_text_than_one_array_holds_cannot_be_taken(tmp_path: Path, rows: int) -> None:
    for _ in range(rows):
        ds = lance_dataset.write_dataset(pa.table({"text": ["x" * (4 << 20)]}), tmp_path / "d", mode="append")
    with pytest.raises(UnsupportedError, match=r"'text'.*2 GiB; ask for fewer rows"):
        ds.take([0] * 600)
    assert ds.take([0] * 3)["text"].to_pylist() == ["x" * (4 << 20)] * 3


# -- dictionaries ------------------------------------------------------------------------------------------------


def test_take_across_clashing_dictionaries(clashing: Any) -> None:
    taken = clashing.take([205, 5, 105])
    assert taken["word"].type == INT8_WORDS
    assert taken["word"].to_pylist() == ["c5", "a5", "b5"]
    with pytest.raises(UnsupportedError, match=r"'word'.*fewer rows"):
        clashing.take(range(300))


def test_scans_across_clashing_dictionaries(clashing: Any) -> None:
    words = [f"{prefix}{i}" for prefix in "abc" for i in range(100)]
    assert clashing.to_table()["word"].to_pylist() == words
    assert clashing.to_table(filter="i >= 0")["word"].to_pylist() == words
    assert [batch.num_rows for batch in clashing.to_batches(batch_size=150)] == [100, 100, 100]
    strict = clashing.to_batches(batch_size=50, strict_batch_size=True)
    assert [word for batch in strict for word in batch["word"].to_pylist()] == words
    with pytest.raises(UnsupportedError, match="'word'"):
        list(clashing.to_batches(batch_size=150, strict_batch_size=True))


def test_order_across_clashing_dictionaries(clashing: Any) -> None:
    first = clashing.to_table(order_by=["i"], limit=6)
    assert first["word"].to_pylist() == ["a0", "b0", "c0", "a1", "b1", "c1"]
    counted = list(clashing.to_batches([], order_by=["i"], batch_size=200))
    assert sum(batch.num_rows for batch in counted) == 300
    last = clashing.to_table(order_by=[lance_dataset.ColumnOrdering("word", ascending=False)], limit=2)
    assert last["word"].to_pylist() == ["c99", "c98"]
    with pytest.raises(UnsupportedError, match="'word'"):
        clashing.to_table(order_by=["i"])


# -- rows that no file holds -------------------------------------------------------------------------------------


def test_rows_without_a_file_are_refused(tmp_path: Path) -> None:
    ds = lance_dataset.write_dataset(pa.table({"a": [1, 2, 3]}), tmp_path / "d")
    manifest = ds.snapshot.manifest
    hollow = replace(manifest.fragments[0], files=(), physical_rows=1 << 31)
    Path(manifest.path).write_bytes(encode_manifest(replace(manifest, fragments=(hollow,))))
    ds = lance_dataset.dataset(tmp_path / "d")
    for read in (ds.to_table, lambda: ds.count_rows("a is null"), lambda: next(ds.to_batches()), lambda: ds.take([0])):
        with pytest.raises(CorruptFileError, match="no data file"):
            read()


def test_a_missing_column_has_the_rows_of_the_files(tmp_path: Path) -> None:
    ds = lance_dataset.write_dataset(pa.table({"a": [1, 2, 3]}), tmp_path / "d")
    manifest = ds.snapshot.manifest
    fragment = manifest.fragments[0]
    dropped = tuple(replace(file, fields=(-2,)) for file in fragment.files)
    for rows in (3, 1 << 31):
        fragments = (replace(fragment, files=dropped, physical_rows=rows),)
        Path(manifest.path).write_bytes(encode_manifest(replace(manifest, fragments=fragments)))
        ds = lance_dataset.dataset(tmp_path / "d")
        if rows == 3:
            assert ds.to_table().to_pydict() == {"a": [None] * 3}
        else:
            with pytest.raises(CorruptFileError, match="has 3 rows, its fragment 2147483648"):
                ds.to_table()


def test_files_without_a_recorded_size_are_measured(tmp_path: Path) -> None:
    ds = lance_dataset.write_dataset(pa.table({"a": range(1000)}), tmp_path / "d")
    manifest = ds.snapshot.manifest
    fragment = manifest.fragments[0]
    sizeless = replace(fragment, files=tuple(replace(file, file_size_bytes=0) for file in fragment.files))
    Path(manifest.path).write_bytes(encode_manifest(replace(manifest, fragments=(sizeless,))))
    reader = lance_dataset.dataset(tmp_path / "d").snapshot.reader.fragments[0]
    assert reader.bytes_per_row == ds.snapshot.reader.fragments[0].bytes_per_row > 0


def test_columns_without_a_file_share_their_nulls() -> None:
    column = NullColumn(pa.int64(), 1 << 40)
    chunks = column.read_chunks(5, 5 + (1 << 31) + 3)
    assert sum(len(chunk) for chunk in chunks) == (1 << 31) + 3
    assert len({chunk.buffers()[1].address for chunk in chunks}) == 1
    assert len(chunks[0]) == 1 << 20
    assert chunks[-1].null_count == len(chunks[-1]) == 3
    assert column.read_chunks(7, 7) == []
