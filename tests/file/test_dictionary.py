"""Tests of dictionary-typed columns: refused writes, pages that are split, dictionaries decoded once."""

from __future__ import annotations

import threading
from pathlib import Path

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import SchemaError, UnsupportedError
from lance_dataset.file.cache import PageCache
from lance_dataset.file.v2_0 import arrays

rng = np.random.default_rng(0)


def dictionary(indices: list[int | None], items: list[str], index_type: pa.DataType | None = None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, index_type or pa.int8()), pa.array(items), safe=False)


def decoded(column: pa.ChunkedArray) -> list[str | None]:
    return [value for chunk in column.chunks for value in chunk.dictionary_decode().to_pylist()]


def write(uri: Path, *batches: pa.Array) -> lance_dataset.LanceDataset:
    schema = pa.schema([("d", batches[0].type)])
    records = [pa.record_batch([batch], schema=schema) for batch in batches]
    return lance_dataset.write_dataset(pa.RecordBatchReader.from_batches(schema, records), str(uri))


@pytest.mark.parametrize("version", ["2.0", "2.2"])
@pytest.mark.parametrize("nested", [False, True])
def test_rows_with_a_dictionary_larger_than_a_page_are_cut_into_few_pages(
    tmp_path: Path, version: str, nested: bool
) -> None:
    items = [f"{number:0100}" for number in range(1000)]
    array = dictionary(rng.integers(0, 1000, 2000).tolist(), items, pa.int16())
    column = pa.StructArray.from_arrays([array], ["d"]) if nested else array
    dataset = lance_dataset.write_dataset(
        pa.table({"d": column}), tmp_path / "d", data_storage_version=version, max_page_bytes=50_000
    )
    (fragment,) = dataset.get_fragments()
    data_file = str(tmp_path / "d" / "data" / fragment.data_files()[0].path)
    pages = [len(each.pages) for each in lance.file.LanceFileReader(data_file).metadata().columns]
    assert max(pages) == 3  # as many as there are page sizes in all bytes, although each page has the dictionary
    for library in (lance_dataset, lance):
        read = library.dataset(str(tmp_path / "d")).to_table().flatten().column(0)
        assert decoded(read.cast(array.type)) == array.to_pylist()


@pytest.mark.parametrize("indices", [[0, 2, 1], [0, -1], [None, 127]])
def test_an_index_outside_the_dictionary_is_refused(tmp_path: Path, indices: list[int | None]) -> None:
    wrong = next(index for index in indices if index not in (0, 1, None))
    with pytest.raises(SchemaError, match=rf"'d'.* {wrong} .*2 items"):
        write(tmp_path / "d", dictionary(indices, ["a", "b"]))
    lists = pa.ListArray.from_arrays([0, len(indices)], dictionary(indices, ["a", "b"]))
    with pytest.raises(SchemaError, match=r"'d\.item'"):
        write(tmp_path / "l", lists)


def test_an_index_under_a_null_does_not_matter(tmp_path: Path) -> None:
    indices = pa.Array.from_buffers(pa.int8(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(b"\x01\x63\x00")])
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False)
    assert decoded(write(tmp_path / "d", array, array).to_table()["d"]) == ["b", None, "a"] * 2


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(("index_type", "size"), [(pa.int8(), 100), (pa.int8(), 128), (pa.uint8(), 256)])
def test_batches_whose_dictionaries_do_not_fit_together(
    tmp_path: Path, index_type: pa.DataType, size: int, nulls: bool
) -> None:
    batches = []
    for batch in range(5):
        indices: list[int | None] = list(range(size))
        if nulls:
            indices[3] = None
        batches.append(dictionary(indices, [f"{batch}-{index}" for index in range(size)], index_type))
    dataset = write(tmp_path / "d", *batches)
    expected = [value for batch in batches for value in batch.dictionary_decode().to_pylist()]
    assert decoded(dataset.to_table()["d"]) == expected
    rows = [0, 4 * size, 3, 2 * size + 3]
    assert decoded(dataset.take(rows)["d"]) == [expected[row] for row in rows]
    assert dataset.schema.field("d").type == pa.dictionary(index_type, pa.string())
    # The reference reads batches only up to the number of values of the index type.
    read = [batch.column(0) for batch in lance.dataset(str(tmp_path / "d")).to_batches(batch_size=size // 2)]
    assert decoded(pa.chunked_array(read)) == expected


def test_more_distinct_values_than_one_array_holds(tmp_path: Path) -> None:
    batches = [dictionary(list(range(100)), [f"{batch}-{index}" for index in range(100)]) for batch in range(3)]
    dataset = write(tmp_path / "d", *batches)
    with pytest.raises(UnsupportedError, match="int8"):
        dataset.take(list(range(300)))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects the number of values at each decoding of a binary encoding."""
    decodes: list[int] = []
    read_binary = arrays._read_binary

    def counting(page: object, node: object, total: int, *rest: object) -> pa.Array:
        decodes.append(total)
        return read_binary(page, node, total, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(arrays, "_read_binary", counting)
    return decodes


@pytest.mark.parametrize("nulls", [False, True])
def test_a_dictionary_is_decoded_once(tmp_path: Path, counted: list[int], nulls: bool) -> None:
    size, count = 5000, 60_000
    indices = pa.array(rng.integers(0, size, count), pa.int32(), mask=rng.random(count) < 0.1 if nulls else None)
    column = pa.DictionaryArray.from_arrays(indices, pa.array([f"item {item}" for item in range(size)]))
    dataset = lance_dataset.write_dataset(pa.table({"d": column}), str(tmp_path / "d"), data_storage_version="2.0")
    values = column.dictionary_decode().to_pylist()
    for rows in (np.arange(0, count, 2000), rng.integers(0, count, 50), np.array([count - 1, 0, 0])):
        taken = dataset.take(rows.tolist())["d"]
        assert decoded(taken) == [values[row] for row in rows]
        assert all(len(chunk.dictionary) <= len(rows) for chunk in taken.chunks)
    assert decoded(pa.Table.from_batches(dataset.to_batches(batch_size=1000))["d"]) == values
    assert counted == [size + nulls]


def test_an_ordered_dictionary_keeps_its_order(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 3] * 10, pa.int8()), ["a", "b", "c", "d"], ordered=True)
    dataset = write(tmp_path / "d", column)
    taken = dataset.take([0, 1])["d"].chunk(0)
    assert taken.to_pylist() == ["c", "a"]
    items = taken.dictionary.to_pylist()
    assert items == sorted(items)


def test_the_cache_keeps_to_its_bound_and_the_newest() -> None:
    cache, made = PageCache(max_bytes=10), []

    def get(key: str, size: int) -> str:
        return cache.get(key, lambda: made.append(key) or key, lambda _: size)

    assert [get("a", 4), get("b", 4), get("a", 4), get("c", 4)] == ["a", "b", "a", "c"]
    get("a", 4)
    assert made == ["a", "b", "c"]  # b, least recently used, was evicted
    get("huge", 100)
    get("huge", 100)
    get("a", 4)
    assert made == ["a", "b", "c", "huge", "a"]


def test_the_cache_under_threads() -> None:
    cache = PageCache(max_bytes=50)

    def work(seed: int) -> None:
        for key in np.random.default_rng(seed).integers(0, 20, 2000).tolist():
            right[seed] += cache.get(key, lambda key=key: key, lambda _: 10) == key

    right = [0] * 4
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [2000] * 4
