"""Tests of columns split into parts for several threads, and of chunks of several columns joined into batches."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_dataset
from lance_dataset.scan.batches import aligned_batches
from lance_dataset.threads import streams
from lance_dataset.threads.pools import SharedPool, cpu_count

ROWS = 150_000


def columns() -> pa.Table:
    rng = np.random.default_rng(7)
    words = np.array([f"customer number {i} of region {i % 7}" for i in range(5000)])
    text = [f"{a} and {b}" for a, b in zip(*rng.choice(words, (2, ROWS)).tolist(), strict=True)]
    lists = pa.ListArray.from_arrays(np.arange(0, 2 * ROWS + 1, 2, np.int32), pa.array(rng.integers(0, 99, 2 * ROWS)))
    nulls = rng.random(ROWS) < 0.1
    return pa.table(
        {
            "id": np.arange(ROWS),
            "text": text,
            "flag": rng.choice(["A", "N", "R"], ROWS),
            "mode": rng.choice(["AIR", "MAIL", "REG AIR", "DELIVER IN PERSON", ""], ROWS),
            "missing": pa.array(rng.choice(["x", "yy", "zzz"], ROWS), mask=nulls),
            "list": lists,
            "struct": pa.StructArray.from_arrays([pa.array(rng.random(ROWS)), pa.array(text)], ["a", "b"]),
        }
    )


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pa.Table]:
    table = columns()
    uri = str(tmp_path_factory.mktemp("scan") / request.param)
    lance_dataset.write_dataset(
        table, uri, data_storage_version=request.param, max_rows_per_file=ROWS // 2, max_page_bytes=1 << 20
    )
    return uri, table


@pytest.fixture(params=["1", "3"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LANCE_CPU_THREADS", request.param)
    monkeypatch.setattr(streams, "cpu_pool", SharedPool("test", cpu_count))
    return request.param


def test_scans_do_not_depend_on_threads(stored: tuple[str, pa.Table], threads: str) -> None:
    uri, table = stored
    dataset = lance_dataset.dataset(uri)
    assert dataset.to_table().equals(table)
    for name in table.column_names:
        assert dataset.to_table(columns=[name]).equals(table.select([name])), name
    batches = list(dataset.to_batches(batch_size=1000))
    assert pa.Table.from_batches(batches).equals(table)
    assert {len(batch) for batch in batches} == {1000}


def test_scans_after_deletions(stored: tuple[str, pa.Table], threads: str, tmp_path: Path) -> None:
    uri, table = stored
    copy = str(tmp_path / "copy")
    lance_dataset.write_dataset(lance_dataset.dataset(uri).to_batches(), copy, schema=table.schema)
    dataset = lance_dataset.dataset(copy)
    dataset.delete("id % 3 = 1 OR id < 40000")
    ids = np.arange(ROWS)
    kept = table.take(np.flatnonzero(~((ids % 3 == 1) | (ids < 40000))))
    assert dataset.to_table().equals(kept)
    assert pa.Table.from_batches(dataset.to_batches(batch_size=999)).equals(kept)
    assert dataset.to_table(columns=["text"], limit=10, offset=5).equals(kept.select(["text"]).slice(5, 10))


def test_parts_cover_the_rows(stored: tuple[str, pa.Table]) -> None:
    uri, _ = stored
    reader = lance_dataset.dataset(uri).snapshot.reader
    fragment = reader.fragments[0]
    for field in reader.manifest.schema.fields:
        for start, stop in [(0, fragment.physical_rows), (11, 60_000), (5, 6), (7, 7)]:
            parts = fragment.column(field).parts(start, stop)
            edges = [part.start for part in parts] + [parts[-1].stop if parts else stop]
            assert edges[0] == start or start == stop
            assert edges[-1] == stop
            assert edges == sorted(set(edges))
            assert [part.stop for part in parts] == edges[1:]
            assert all(part.cost >= 0 for part in parts)
    if not uri.endswith("2.0"):
        text = fragment.column(reader.manifest.schema.top_level("text"))
        assert len(text.parts(0, fragment.physical_rows)) > 1


def test_text_that_decodes_to_more_than_expected(tmp_path: Path) -> None:
    """Text that decodes to more than estimated is read: the sample is short, and the long strings lie between."""
    rng = np.random.default_rng(1)
    text = [rng.bytes(12).hex() for _ in range(100_000)]
    for start in range(2000, 100_000, 12_500):
        text[start : start + 1500] = ["a long row of words that repeat, " * 4] * 1500
    encoding = {"lance-encoding:compression": "fsst", "lance-encoding:structural-encoding": "miniblock"}
    field = pa.field("text", pa.string(), metadata=encoding)
    table = pa.table([text], schema=pa.schema([field]))
    uri = str(tmp_path / "text")
    lance_dataset.write_dataset(table, uri, data_storage_version="2.2", max_page_bytes=32 << 20)
    dataset = lance_dataset.dataset(uri)
    assert dataset.to_table().column("text").equals(table.column("text"))
    assert dataset.to_table(limit=90_000, offset=1000).column("text").equals(table.column("text").slice(1000, 90_000))


# -- pieces ------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(1, 30), min_size=1), min_size=1, max_size=4), st.integers(1, 25))
def test_aligned_batches(lengths: list[list[int]], batch_size: int) -> None:
    rows = min(sum(chunks) for chunks in lengths)
    values = pa.array(np.arange(rows))
    columns = []
    for chunks in lengths:
        cuts = [0, *(int(cut) for cut in np.cumsum(chunks) if cut < rows), rows]
        columns.append([values.slice(low, high - low) for low, high in pairwise(cuts)])
    schema = pa.schema([pa.field(f"c{number}", pa.int64()) for number in range(len(columns))])
    batches = list(aligned_batches(columns, schema, batch_size))
    assert pa.Table.from_batches(batches, schema).equals(pa.table([values] * len(columns), schema=schema))
    assert all(len(batch) % batch_size == 0 for batch in batches[:-1])


def test_batches_of_whole_chunks_are_not_copied() -> None:
    chunk = pa.array(np.arange(1000))
    schema = pa.schema([pa.field("c", pa.int64())])
    [first, second] = aligned_batches([[chunk, chunk]], schema, 100)
    assert {first["c"].buffers()[1].address, second["c"].buffers()[1].address} == {chunk.buffers()[1].address}


def test_batches_whose_dictionaries_do_not_join_are_shorter() -> None:
    kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    chunks = [
        pa.DictionaryArray.from_arrays(
            pa.array(range(100), pa.int8()), pa.array([f"{name}{i}" for i in range(100)]), ordered=True
        )
        for name in "ab"
    ]
    batches = list(aligned_batches([chunks], pa.schema([pa.field("c", kind)]), 150))
    assert [len(batch) for batch in batches] == [100, 50, 50]
    assert [value for batch in batches for value in batch["c"].to_pylist()] == [
        value for chunk in chunks for value in chunk.to_pylist()
    ]


def test_empty_windows_have_no_batches() -> None:
    assert list(aligned_batches([[]], pa.schema([pa.field("c", pa.int64())]), 10)) == []
