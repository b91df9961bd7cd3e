"""Tests of local disks that are full, broken, read-only or slow. What a power loss does is tested in `test_crash`.

``LANCE_STRESS=1`` fails at every call of every change, ``LANCE_STRESS_SEED`` sets the seed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from support.crashes.crash_operations import (
    OPERATIONS,
    Operation,
    Place,
    Seen,
    check_between,
    check_goes_on,
    observe,
    operation_names,
    rows,
)
from support.crashes.failing_disk import FailingDisk

import lance_dataset

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
SEED = int(os.environ.get("LANCE_STRESS_SEED", "20261123"))
#: Number of calls of each change that fail in each way, if not all.
TRIED = 10**9 if THOROUGH else 1
#: Ways to fail, and whether all later calls fail too: a disk that is full, one that cannot write in one place.
WAYS = [(errno.ENOSPC, True), (errno.EIO, False)]
#: Root on Linux mounts disks in memory. For others a limit of the size of files, and permissions, stand in for them.
MOUNTS = sys.platform == "linux" and os.geteuid() == 0


def errors_of(error: BaseException | None) -> Iterator[int | None]:
    """Yield the numbers of an error and of its causes."""
    while error is not None:
        yield getattr(error, "errno", None)
        error = error.__cause__ or error.__context__


@dataclass(frozen=True)
class Scene:
    """A change, the disk before it, and what was seen before and after it."""

    operation: Operation
    root: Path
    kept: Path
    before: Seen
    after: Seen

    @property
    def quick(self) -> Place:
        return Place(str(self.root), {"storage_options": {"local_fsync": "false"}})

    def attempt(self, disk: FailingDisk) -> None:
        """Make the change on a disk that fails, and check what is left."""
        shutil.rmtree(self.root)
        shutil.copytree(self.kept, self.root, symlinks=True)
        caught: Exception | None = None
        with disk.installed():
            try:
                self.operation.run(Place(str(self.root)))
            except Exception as error:
                caught = error
        try:
            assert caught is None or disk.error in errors_of(caught)
            seen = observe(self.quick)
            removes = self.operation.removes
            check_between(seen, self.before, self.after, done=caught is None, removes=removes)
            if self.operation.repair and caught is not None:
                self.operation.repair(self.quick)
                seen = observe(self.quick)
            if THOROUGH or disk.lasting:
                check_goes_on(self.quick, seen)
        except Exception as problem:
            context = f"seed {SEED}, {disk.error}, call {disk.at}, {disk.calls[-1]}: {caught!r}"
            raise AssertionError(f"{context}: {type(problem).__name__}: {problem}") from problem


@pytest.mark.parametrize("name", operation_names())
def test_a_call_fails(name: str, tmp_path: Path) -> None:
    """If the disk fails at any call, the change happened entirely or not at all, and later ones work."""
    operation, chance = OPERATIONS[name], random.Random(f"{SEED} {name}")
    root, kept = tmp_path / "disk", tmp_path / "kept"
    root.mkdir()
    quick = Place(str(root), {"storage_options": {"local_fsync": "false"}})
    operation.prepare(quick)
    before = observe(quick)
    shutil.copytree(root, kept, symlinks=True)
    counting = FailingDisk()
    with counting.installed():
        operation.run(Place(str(root)))
    scene = Scene(operation, root, kept, before, observe(quick))
    calls = range(len(counting.calls))
    for error, lasting in WAYS:
        for at in chance.sample(calls, min(TRIED, len(calls))):
            scene.attempt(FailingDisk(at, error, lasting))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder on a separate disk of 2 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"root may not mount here; run the tests as another user, or with CAP_SYS_ADMIN ({done.stderr})")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def random_rows(count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(count), pa.int64()), "data": [os.urandom(100) for _ in range(count)]})


def fill_and_go_on(folder: Path, free: contextlib.AbstractContextManager[object]) -> None:
    """Append to a dataset until that fails, and again with room."""
    path = str(folder / "t")
    lance_dataset.write_dataset(random_rows(1000), path)
    done = 1
    with free:
        failed: OSError | None = None
        while failed is None and done < 50:
            try:
                lance_dataset.write_dataset(random_rows(1000 * done), path, mode="append")
                done += 1
            except OSError as error:
                failed = error
        assert {errno.ENOSPC, errno.EFBIG} & set(errors_of(failed))
        opened = lance_dataset.dataset(path)
        assert opened.version == done
        assert opened.count_rows() == 1000 + sum(1000 * each for each in range(1, done))
        opened.validate()


def full_disk(small_disk: Path) -> None:
    fill_and_go_on(small_disk, contextlib.nullcontext())
    opened = lance_dataset.dataset(str(small_disk / "t"))
    count = opened.count_rows()
    ballast = small_disk / "ballast"
    with contextlib.suppress(OSError):
        ballast.write_bytes(bytes(2 << 20))
    for change in (
        lambda: opened.delete("id < 500"),
        opened.optimize.compact_files,
        lambda: opened.tags.create("a", 1),
    ):
        with pytest.raises(OSError) as caught:
            change()
        assert errno.ENOSPC in errors_of(caught.value)
        assert lance_dataset.dataset(str(small_disk / "t")).count_rows() == count
    ballast.unlink()
    opened.delete("id < 1")
    assert lance_dataset.dataset(str(small_disk / "t")).count_rows() < count


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_a_disk_that_is_full(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    import resource

    if MOUNTS:
        full_disk(request.getfixturevalue("small_disk"))

    @contextlib.contextmanager
    def limited() -> Iterator[None]:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    fill_and_go_on(tmp_path, limited())
    with limited(), pytest.raises(OSError, match=r"new/data/.*\.lance"):
        lance_dataset.write_dataset(random_rows(10_000), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def read_only(path: str, number: int) -> None:
    """Check that a dataset can be read, and that changes fail without an effect."""
    opened = lance_dataset.dataset(path)
    assert opened.count_rows() == opened.to_table().num_rows == 100
    assert lance_dataset.dataset(path, version="first").take([5])["id"].to_pylist() == [5]
    changes = [
        lambda: lance_dataset.write_dataset(random_rows(1), path, mode="append"),
        lambda: lance_dataset.write_dataset(random_rows(1), path + "-new"),
        lambda: opened.delete("id = 1"),
        lambda: opened.update({"id": "7"}),
        lambda: opened.tags.create("second", 1),
        lambda: opened.tags.delete("first"),
        lambda: opened.create_branch("side"),
    ]
    for change in changes:
        with pytest.raises(OSError) as caught:
            change()
        assert number in errors_of(caught.value), repr(caught.value)
    assert lance_dataset.dataset(path).versions()[-1]["version"] == 1
    assert opened.tags.list().keys() == {"first"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_a_disk_that_is_read_only(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    path = (request.getfixturevalue("small_disk") if MOUNTS else tmp_path) / "above" / "t"
    lance_dataset.write_dataset(random_rows(100), str(path)).tags.create("first", 1)
    if MOUNTS:
        above = str(path.parents[1])
        subprocess.run(["mount", "-o", "remount,ro", above], check=True)
        read_only(str(path), errno.EROFS)
        subprocess.run(["mount", "-o", "remount,rw", above], check=True)
    else:
        folders = [path.parent, *(each for each in path.parent.rglob("*") if each.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        try:
            read_only(str(path), errno.EACCES)
        finally:
            for folder in folders:
                folder.chmod(0o755)
    assert lance_dataset.write_dataset(random_rows(1), str(path), mode="append").version == 2


def test_two_writers_on_a_slow_disk(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    lance_dataset.write_dataset(rows(0, 10), path)
    disk = FailingDisk(slow=0.02)

    def append(start: int) -> None:
        for number in range(4):
            lance_dataset.write_dataset(rows(start + number, 1), path, mode="append")

    with disk.installed():
        threads = [threading.Thread(target=append, args=(start,)) for start in (100, 200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    opened = lance_dataset.dataset(path)
    assert opened.version == 9
    assert sorted(opened.to_table()["id"].to_pylist()) == [*range(10), *range(100, 104), *range(200, 204)]
