"""Tests of writes that fail half way: nothing is committed, no file is left, and the dataset reads as before."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset.errors import CorruptFileError, SchemaError, UnsupportedError
from lance_dataset.table import publish

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])
MODES = ("append", "overwrite")


def batch(start: int, rows: int = 1000) -> pa.RecordBatch:
    ids = pa.array(range(start, start + rows), pa.int64())
    return pa.record_batch([ids, pa.array([f"row {i}" for i in range(rows)])], schema=SCHEMA)


def files(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = str(tmp_path / "kept.lance")
    lance.write_dataset(pa.Table.from_batches([batch(0)]), path)
    return path


@pytest.fixture
def unchanged(uri: str) -> Iterator[None]:
    before = files(Path(uri))
    yield
    assert files(Path(uri)) == before
    dataset = lance.dataset(uri)
    assert dataset.version == 1
    assert dataset.to_table().equals(pa.Table.from_batches([batch(0)]))
    lance.write_dataset(pa.Table.from_batches([batch(1000)]), uri, mode="append")
    assert lance.dataset(uri).count_rows() == 2000


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Make interrupts raise an exception, also in processes that ignore them, such as those of parallel test runs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Oops(Exception):
    """An error of user code."""


def stream(*items: pa.RecordBatch | Exception) -> Iterator[pa.RecordBatch]:
    for item in items:
        if isinstance(item, Exception):
            raise item
        yield item


def write(uri: str, data: Any, mode: str, **options: Any) -> Callable[[], Any]:
    return lambda: lance.write_dataset(data, uri, schema=SCHEMA, mode=mode, **options)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [{}, {"max_rows_per_file": 300}, {"max_bytes_per_file": 1000}])
def test_generator_that_raises(uri: str, mode: str, options: dict[str, int]) -> None:
    with pytest.raises(Oops):
        write(uri, stream(batch(0), batch(1), Oops("stop")), mode, **options)()


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("mode", MODES)
def test_reader_that_raises(uri: str, mode: str) -> None:
    reader = pa.RecordBatchReader.from_batches(SCHEMA, stream(batch(0), Oops("stop")))
    with pytest.raises(Oops):
        lance.write_dataset(reader, uri, mode=mode, max_rows_per_file=300)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("mode", MODES)
def test_third_batch_of_another_schema(uri: str, mode: str) -> None:
    odd = pa.record_batch({"id": [1], "words": ["x"]})
    with pytest.raises(SchemaError, match=r"item 2 .*words"):
        write(uri, stream(batch(0), batch(1), odd), mode, max_rows_per_file=300)()


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("mode", MODES)
def test_null_where_none_is_allowed_in_the_last_batch(uri: str, mode: str) -> None:
    bad = pa.RecordBatch.from_arrays([pa.array([1, None]), pa.array(["a", "b"])], schema=SCHEMA)
    for data in (stream(batch(0), bad), pa.Table.from_batches([batch(0), bad])):
        with pytest.raises(SchemaError, match=r"'id'.*not nullable"):
            write(uri, data, mode, max_rows_per_file=300)()


@pytest.mark.usefixtures("unchanged")
def test_null_structs(uri: str) -> None:
    table = pa.table({"s": pa.array([{"a": 1}] * 1000 + [None])})
    with pytest.raises(UnsupportedError, match=r"'s'.*null structs"):
        lance.write_dataset(table, uri, mode="overwrite", max_rows_per_file=300, data_storage_version="2.0")


@pytest.mark.usefixtures("unchanged")
def test_nested_null_where_none_is_allowed(uri: str) -> None:
    item = pa.field("item", pa.int64(), nullable=False)
    lists = pa.Array.from_buffers(
        pa.list_(item), 2, [None, pa.array([0, 1, 2], pa.int32()).buffers()[1]], children=[pa.array([1, None])]
    )
    with pytest.raises(SchemaError, match=r"'l\.item.*not nullable"):
        lance.write_dataset(pa.table({"l": lists}), uri, mode="overwrite")


# -- disks -------------------------------------------------------------------------------------------------------

FULL = """
import resource, signal, sys
import lance_dataset as lance, numpy as np, pyarrow as pa
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
table = pa.table({"id": pa.array(np.random.default_rng(1).integers(0, 1 << 60, 400_000)), "text": ["row"] * 400_000})
try:
    lance.write_dataset(table, sys.argv[1], mode="overwrite", max_rows_per_file=int(sys.argv[3]))
except OSError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(("limit", "rows"), [(0, 10**6), (100_000, 10**6), (1 << 20, 10**6), (100_000, 20_000)])
def test_no_room_on_the_disk(uri: str, limit: int, rows: int) -> None:
    """A write fails cleanly if a limit on the size of files stops a system call in the middle of a file."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, uri, str(limit), str(rows)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stdout, done.stdout


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 4 MiB. If mounting is not allowed, the test above has to suffice."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk(small_disk: Path) -> None:
    uri = str(small_disk / "table.lance")
    lance.write_dataset(pa.Table.from_batches([batch(0)]), uri)
    before = files(Path(uri))
    numbers = pa.array(np.random.default_rng(1).integers(0, 1 << 60, 1_000_000))
    table = pa.table([numbers, pa.nulls(len(numbers), pa.string())], schema=SCHEMA)
    for rows in (10**6, 100_000):
        with pytest.raises(OSError, match="No space left"):
            lance.write_dataset(table, uri, mode="append", max_rows_per_file=rows)
        assert files(Path(uri)) == before
    assert lance.dataset(uri).to_table().equals(pa.Table.from_batches([batch(0)]))
    lance.write_dataset(pa.Table.from_batches([batch(1)]), uri, mode="append")
    assert lance.dataset(uri).count_rows() == 2000


READ_ONLY = """
import os, sys
import lance_dataset as lance, lance_dataset.dataset, pyarrow as pa
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
for mode in ("append", "overwrite"):
    try:
        lance.write_dataset(pa.table({"id": [1], "text": ["x"]}, schema=pa.schema(
            [pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])), sys.argv[1], mode=mode)
    except PermissionError as error:
        print(mode, error.filename)
try:
    lance.dataset(sys.argv[1]).delete("id = 3")
except PermissionError as error:
    print("delete", error.filename)
print(lance.dataset(sys.argv[1]).count_rows())
"""


def test_folder_that_is_not_writable(uri: str, tmp_path: Path) -> None:
    folders = [Path(uri), *(path for path in Path(uri).rglob("*") if path.is_dir())]
    for parent in Path(uri).parents:
        if parent == Path("/tmp"):
            break
        parent.chmod(parent.stat().st_mode | 0o055)
    before = files(Path(uri))
    for folder in folders:
        folder.chmod(0o555)
    try:
        done = subprocess.run([sys.executable, "-c", READ_ONLY, uri], capture_output=True, text=True, check=False)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    for action in ("append", "overwrite", "delete"):
        assert f"{action} {uri}" in done.stdout
    assert done.stdout.splitlines()[-1] == "1000"
    assert files(Path(uri)) == before


# -- around the commit -------------------------------------------------------------------------------------------


def test_crash_between_data_and_manifest(uri: str) -> None:
    """Leftovers of a killed writer are never read, and do not hinder later writes."""
    Path(uri, "data", "orphan.lance").write_bytes(b"half a file")
    Path(uri, "_transactions", "0-orphan.txn").write_bytes(b"half")
    Path(uri, "_versions", ".tmp_orphan").write_bytes(b"half a manifest")
    Path(uri, "_versions", "nonsense").write_bytes(b"")
    dataset = lance.dataset(uri)
    assert dataset.version == 1
    assert [version["version"] for version in dataset.versions()] == [1]
    assert dataset.to_table().equals(pa.Table.from_batches([batch(0)]))
    lance.write_dataset(pa.Table.from_batches([batch(1)]), uri, mode="append")
    assert lance.dataset(uri).count_rows() == 2000


@pytest.mark.parametrize("mode", [*MODES, "create"])
def test_interrupted_just_after_the_commit(
    uri: str, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a write is interrupted just after its commit, the new version exists and its files stay."""

    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    target = uri if mode != "create" else str(tmp_path / "new.lance")
    monkeypatch.setattr(publish, "_write_hint", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lance.write_dataset(pa.Table.from_batches([batch(5000)]), target, mode=mode)
    dataset = lance.dataset(target)
    assert dataset.version == (1 if mode == "create" else 2)
    assert dataset.to_table()["id"].to_pylist()[-1] == 5999


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("mode", MODES)
def test_interrupted_just_before_the_commit(uri: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(publish, "manifest_path", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lance.write_dataset(pa.Table.from_batches([batch(5000)]), uri, mode=mode)


def test_delete_interrupted_just_after_the_commit(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a delete is interrupted just after its commit, the files of the new version stay, and unused ones are removed.

    This includes a delete that was rebased on another one.
    """

    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    behind = lance.dataset(uri)
    lance.dataset(uri).delete("id = 1")
    with monkeypatch.context() as patch:
        patch.setattr(publish, "_write_hint", interrupted)
        with pytest.raises(KeyboardInterrupt):
            behind.delete("id = 2")
        with pytest.raises(KeyboardInterrupt):
            lance.dataset(uri).delete("id = 3")
    dataset = lance.dataset(uri)
    assert dataset.version == 4
    assert dataset.to_table()["id"].to_pylist() == [0, *range(4, 1000)]
    assert len(list(Path(uri, "_deletions").iterdir())) == 3


@pytest.mark.usefixtures("unchanged")
def test_delete_interrupted_just_before_the_commit(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(publish, "manifest_path", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lance.dataset(uri).delete("id = 2")


def test_delete_that_finds_a_damaged_fragment(tmp_path: Path) -> None:
    """A delete that finds a damaged fragment removes the deletion files of the fragments before it."""
    uri = str(tmp_path / "two.lance")
    lance.write_dataset(pa.Table.from_batches([batch(0)]), uri)
    first = set(Path(uri, "data").iterdir())
    lance.write_dataset(pa.Table.from_batches([batch(1000)]), uri, mode="append")
    [second] = set(Path(uri, "data").iterdir()) - first
    content = second.read_bytes()
    second.write_bytes(content[:-4] + b"XXXX")
    before = files(Path(uri))
    with pytest.raises(CorruptFileError, match=second.name):
        lance.dataset(uri).delete("id % 2 = 0")
    assert files(Path(uri)) == before
