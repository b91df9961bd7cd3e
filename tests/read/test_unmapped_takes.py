"""Tests of takes from files that are not mapped, compared with takes from the same files mapped."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.arrays.random_columns import Column, Data, columns, make_table
from support.stores.s3_server import S3Server

import lance_dataset as lance
from lance_dataset.errors import CorruptFileError
from lancecodec import blocks

DATASETS = Path(__file__).parents[1] / "fixtures" / "datasets"
RELEASES = [f"pylance-0.20.0-{version}" for version in ("legacy", "2.0", "2.1")] + ["pylance-14.0.2-2.3"]
LIMIT = blocks.usage()[1]
ROWS = 30_000


@pytest.fixture(autouse=True)
def own_limit() -> Iterator[None]:
    yield
    blocks.set_limit(LIMIT)


def opened(path: Path | str) -> tuple[lance.LanceDataset, lance.LanceDataset]:
    return (
        lance.dataset(path, storage_options={"mmap": "true"}),
        lance.dataset(path, storage_options={"mmap": "false"}),
    )


def samples(total: int, seed: int = 0) -> list[np.ndarray]:
    """Return rows: none, one, some in any order with repeats, ascending ones, neighbors, all."""
    rng = np.random.default_rng(seed)
    if not total:
        return [np.empty(0, np.int64)]
    begin = int(rng.integers(total))
    return [
        np.empty(0, np.int64),
        rng.integers(0, total, 1),
        rng.integers(0, total, 100),
        np.sort(rng.integers(0, total, 100)),
        np.arange(begin, min(begin + 50, total)),
        np.repeat(rng.integers(0, total, 5), 7),
        rng.permutation(total)[: 3 * total // 4],
        np.array([total - 1, 0]),
    ]


def assert_same_takes(path: Path | str, seed: int = 0) -> None:
    mapped, plain = opened(path)
    for rows in samples(mapped.count_rows(), seed):
        expected, found = mapped.take(rows), plain.take(rows)
        found.validate(full=True)
        assert found == expected
        assert plain.take(rows) == expected  # from blocks that are loaded


def kinds() -> dict[str, pa.DataType]:
    item = pa.struct([("a", pa.int32()), ("b", pa.string())])
    return {
        "int64": pa.int64(),
        "bool": pa.bool_(),
        "decimal": pa.decimal128(30, 3),
        "string": pa.string(),
        "large_binary": pa.large_binary(),
        "vector": pa.list_(pa.float32(), 32),
        "list": pa.list_(pa.int16()),
        "strings": pa.large_list(pa.string()),
        "struct": item,
        "structs": pa.list_(item),
        "lists": pa.list_(pa.list_(pa.int64())),
        "dictionary": pa.dictionary(pa.int16(), pa.string()),
    }


@pytest.mark.filterwarnings("ignore:column .* holds:UserWarning")  # what legacy files lose is lost for both
@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
def test_types(tmp_path: Path, version: str) -> None:
    nulls = 0.0 if version in ("legacy", "2.0") else 0.2
    drawn = [Column(kind, Data(nulls, values=name), seed=7) for kind in kinds().values() for name in ("random", "few")]
    table = make_table(drawn, 3000)
    for begin in range(0, 3000, 1000):
        lance.write_dataset(table.slice(begin, 1000), tmp_path / "t", mode="append", data_storage_version=version)
    assert_same_takes(tmp_path / "t")


@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}, {"structural-encoding": "fullzip"}])
@pytest.mark.parametrize("name", ["int64", "string", "vector", "list", "strings"])
def test_many_chunks_and_pages(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    """Rows of lists and texts reach over chunks and pages."""
    drawn = Column(kinds()[name], Data(0.1, values="long"), options=tuple(options.items()))
    table = make_table([drawn], ROWS // (10 if "string" in name else 1))
    lance.write_dataset(table, tmp_path / "t", data_storage_version="2.1", max_page_bytes=1 << 17)
    assert_same_takes(tmp_path / "t")


@settings(max_examples=15, deadline=None)
@given(column=columns("2.2"), rows=st.sampled_from([1, 50, 3000]), seed=st.integers(0, 99))
def test_any_column(tmp_path_factory: pytest.TempPathFactory, column: Column, rows: int, seed: int) -> None:
    path = tmp_path_factory.mktemp("t") / "t"
    lance.write_dataset(make_table([column], rows), path, data_storage_version="2.2")
    assert_same_takes(path, seed)


@pytest.mark.parametrize("release", RELEASES)
def test_files_of_the_reference(release: str) -> None:
    assert_same_takes(DATASETS / release / "ds.lance")


def test_deleted_rows_and_columns_of_a_scan(tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(ROWS), "b": [f"text {number}" for number in range(ROWS)]})
    lance.write_dataset(table, tmp_path / "t", max_rows_per_file=ROWS // 3)
    lance.dataset(tmp_path / "t").delete("a % 7 = 3")
    assert_same_takes(tmp_path / "t")
    mapped, plain = opened(tmp_path / "t")
    assert plain.to_table(filter="a % 100 = 5") == mapped.to_table(filter="a % 100 = 5")


def test_blocks_are_dropped(tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(1 << 20), "b": np.random.default_rng(0).random(1 << 20)})
    lance.write_dataset(table, tmp_path / "t")
    blocks.set_limit(1 << 20)
    _, plain = opened(tmp_path / "t")
    rng = np.random.default_rng(1)
    for _ in range(30):
        rows = rng.integers(0, 1 << 20, 300)
        assert plain.take(rows) == table.take(pa.array(rows))
        assert blocks.usage()[0] <= 5 << 20  # extents of the last take are dropped by the next one
    assert plain.take(np.arange(1 << 20)) == table
    before = blocks.usage()[0]
    del plain
    gc.collect()
    assert blocks.usage()[0] < before


def test_the_limit_of_blocks_is_that_of_the_last_operation(tmp_path: Path) -> None:
    """An operation with a limit of memory does not lower that of the process for good."""
    for name in "ab":
        lance.write_dataset(pa.table({"a": np.arange(1000)}), tmp_path / name)
    with lance.limited_memory(16 << 20):
        assert opened(tmp_path / "a")[1].take([5])["a"].to_pylist() == [5]
        assert blocks.usage()[1] == 1 << 20
    assert opened(tmp_path / "b")[1].take([5])["a"].to_pylist() == [5]
    assert blocks.usage()[1] == LIMIT


def test_threads_share_blocks_that_are_dropped(tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(1 << 19), "b": [f"{number}" for number in range(1 << 19)]})
    lance.write_dataset(table, tmp_path / "t")
    blocks.set_limit(1 << 19)
    _, plain = opened(tmp_path / "t")
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for count in (1, 10, 500, 5000, 1) * 6:
            rows = rng.integers(0, 1 << 19, count)
            if plain.take(rows) != table.take(pa.array(rows)):
                wrong.append((seed, count))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1"])
def test_a_truncated_file_is_an_error(tmp_path: Path, version: str) -> None:
    table = pa.table({"a": np.random.default_rng(0).integers(0, 1 << 60, 100_000)})
    lance.write_dataset(table, tmp_path / "t", data_storage_version=version)
    _, plain = opened(tmp_path / "t")
    assert plain.take([5]) == table.slice(5, 1)
    (data,) = (tmp_path / "t" / "data").iterdir()
    os.truncate(data, 64 << 10)
    assert plain.take([5]) == table.slice(5, 1)
    with pytest.raises(CorruptFileError, match="shrank"):
        plain.take([90_000])
    with pytest.raises(CorruptFileError, match="shrank"):
        plain.take(np.arange(80_000, 90_000))


def test_without_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that cannot reserve addresses, or a limit of 0, leads to reads of ranges."""
    monkeypatch.setattr("lance_dataset.io.blocks._apply_limit", lambda: 0)
    lance.write_dataset(make_table([Column(kind) for kind in kinds().values()], 2000), tmp_path / "t")
    assert_same_takes(tmp_path / "t")
    assert blocks.usage()[0] == 0


def test_an_object_store(tmp_path: Path, s3_server: S3Server) -> None:
    table = make_table([Column(kind, Data(0.1)) for kind in kinds().values()], 4000)
    options, uri = s3_server.options, f"s3://{s3_server.new_bucket()}/t"
    lance.write_dataset(table, uri, storage_options=options, max_rows_per_file=1000)
    lance.write_dataset(table, tmp_path / "t", max_rows_per_file=1000)
    local, remote = lance.dataset(tmp_path / "t"), lance.dataset(uri, storage_options=options)
    for rows in samples(4000):
        assert remote.take(rows) == local.take(rows)
    remote.io_stats_incremental()
    assert remote.take(rows) == local.take(rows)
    assert remote.io_stats_incremental().read_iops == 0
