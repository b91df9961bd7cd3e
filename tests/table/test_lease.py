"""Tests of leases: one owner at a time, on every kind of store."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support.stores.s3_server import S3Server

from lance_dataset.errors import StorageError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.io.resolve import resolve
from lance_dataset.table.lease import Lease, LeaseHeldError, LeaseLostError, read_lease


@pytest.fixture(params=["memory", "local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ObjectStore, str]:
    """Return a store and a path in it."""
    if request.param == "memory":
        return MemoryStore(), "/t"
    if request.param == "local":
        return resolve(str(tmp_path / "t"), {})
    server: S3Server = request.getfixturevalue("s3_server")
    return resolve(f"s3://{server.new_bucket()}/t", server.options)


def names(store: ObjectStore, root: str) -> list[str]:
    return sorted(info.name for info in store.list(f"{root}/_maintenance"))


def until(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(0.02)


def stopped(lease: Lease) -> Lease:
    """Stop the renewals of a lease, as if its process was killed."""
    lease._stop.set()
    lease._thread.join()  # type: ignore[union-attr]
    return lease


def test_there_is_one_owner(place: tuple[ObjectStore, str]) -> None:
    store, root = place
    assert read_lease(store, root) is None
    with Lease.take(store, root, 60) as lease:
        lease.check()
        assert lease.taken_over is None
        with pytest.raises(LeaseHeldError) as refused:
            Lease.take(store, root, 60)
        assert refused.value.state == read_lease(store, root)
        assert not refused.value.state.released
    state = read_lease(store, root)
    assert state is not None
    assert state.released
    assert lease.is_lost
    with Lease.take(store, root, 60) as other:
        assert other.taken_over is None
        assert len(names(store, root)) == 1
    assert names(store, root) == [f"lease-{4:020d}.json"]


def test_an_expired_lease_is_taken_over(place: tuple[ObjectStore, str]) -> None:
    store, root = place
    first = stopped(Lease.take(store, root, 0.2))
    second: list[Lease] = []

    def take() -> bool:
        with suppress(LeaseHeldError):
            second.append(Lease.take(store, root, 60))
        return bool(second)

    until(take)
    with second[0], pytest.raises(LeaseLostError, match="was not renewed for"):
        first.check()
    assert second[0].taken_over == first._owner
    before = names(store, root)
    first.release()
    assert names(store, root) == before


def test_leases_are_renewed() -> None:
    store = MemoryStore()
    with Lease.take(store, "/t", 3):
        until(lambda: read_lease(store, "/t").number > 1)  # type: ignore[union-attr]
        with pytest.raises(LeaseHeldError):
            Lease.take(store, "/t", 3)
        assert len(names(store, "/t")) <= 2  # the one before may be just going


def test_a_late_writer_does_not_get_a_number_that_is_free_again() -> None:
    store = MemoryStore()
    with Lease.take(store, "/t", 60):
        pass
    late = Lease(store, "/t", 60)
    assert not late._advance(0)
    state = read_lease(store, "/t")
    assert state is not None
    assert (state.number, state.released) == (2, True)


def test_a_renewal_whose_check_failed_counts() -> None:
    class Torn(MemoryStore):
        torn = False

        def read(self, path: str) -> bytes:
            if self.torn:
                self.torn = False
                raise StorageError("torn")
            return super().read(path)

    store = Torn()
    with Lease.take(store, "/t", 60) as lease:
        stopped(lease)
        store.torn = True
        with pytest.raises(StorageError):
            lease._advance(1)
        assert lease._advance(1)
        assert lease._number == 3
        lease.check()


def test_stores_that_do_not_answer_end_a_lease() -> None:
    class Silent(MemoryStore):
        silent = False

        def put_if_absent(self, path: str, data: bytes) -> None:
            if self.silent:
                raise StorageError("no answer")
            super().put_if_absent(path, data)

    store = Silent()
    lease = Lease.take(store, "/t", 0.3)
    store.silent = True
    until(lambda: lease.is_lost)
    lease.release()
    assert names(store, "/t")[0].startswith("lease-")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"owner": 1, "seconds": 5, "released": true}', b"\xff"])
def test_unknown_forms_count_as_held(content: bytes) -> None:
    store = MemoryStore()
    store.put(f"/t/_maintenance/lease-{7:020d}.json", content)
    store.put("/t/_maintenance/notes.txt", b"")
    with pytest.raises(LeaseHeldError, match="unknown form"):
        Lease.take(store, "/t", 60)


def test_temporary_files_of_killed_processes_go(tmp_path: Path) -> None:
    import os

    store, root = resolve(str(tmp_path / "t"), {})
    with Lease.take(store, root, 60):
        pass
    old, new = (Path(root, "_maintenance", f".tmp_{name}") for name in ("old", "new"))
    for path in (old, new):
        path.touch()
    os.utime(old, (time.time() - 7200,) * 2)
    with Lease.take(store, root, 60):
        assert (old.exists(), new.exists()) == (False, True)
