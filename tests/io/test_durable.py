"""Tests of synced files and folders, and of a disk that fails to sync."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from lance_dataset.io import durable
from lance_dataset.io.durable import forget_folders, settle_folder
from lance_dataset.io.local import LocalStore


def failing_for_folders(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def test_failure_to_sync_a_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed sync of a folder raises an error, since a power failure could lose the file."""
    store = LocalStore()
    failing_for_folders(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        store.put_if_absent(str(tmp_path / "new" / "a"), b"a")
    output = store.open_output(str(tmp_path / "b"))
    output.write(b"b")
    with pytest.raises(OSError, match="Input/output"):
        output.close()
    assert not (tmp_path / "b").exists()


def test_file_systems_that_do_not_sync_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_for_folders(monkeypatch, errno.EINVAL)
    store = LocalStore()
    store.put_if_absent(str(tmp_path / "new" / "a"), b"a")
    assert store.read(str(tmp_path / "new" / "a")) == b"a"


def synced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the folders that are synced to make one durable."""
    found: set[str] = set()
    real = os.open

    def note(path: str, flags: int, *rest: int, **options: int) -> int:
        found.add(path)
        return real(path, flags, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", note)
        settle_folder(str(folder))
    return found


def test_way_to_a_folder_is_synced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    forget_folders(str(tmp_path))
    assert {str(folder), str(folder.parent), str(tmp_path)} <= synced(folder, monkeypatch)
    assert synced(folder, monkeypatch) == {str(folder)}
    # a folder of the same name is another one
    LocalStore().delete_tree(str(folder.parent))
    folder.mkdir(parents=True)
    assert {str(folder), str(folder.parent), str(tmp_path)} <= synced(folder, monkeypatch)


def test_way_to_a_folder_is_synced_without_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(durable, "stream", start)
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    forget_folders(str(tmp_path))
    assert {str(folder), str(folder.parent), str(tmp_path)} <= synced(folder, monkeypatch)


def test_folders_are_forgotten_while_others_are_settled(tmp_path: Path) -> None:
    """No thread sees the record of folders change while it reads it."""
    folders = [tmp_path / f"f{number}" for number in range(40)]
    for folder in folders:
        folder.mkdir()
    failed: list[BaseException] = []
    left = threading.Event()

    def forget() -> None:
        while not left.is_set():
            try:
                forget_folders(str(tmp_path / "f1"))
            except RuntimeError as error:
                failed.append(error)
                return

    worker = threading.Thread(target=forget, daemon=True)
    worker.start()
    for _ in range(5):
        for folder in folders:
            settle_folder(str(folder))
        forget_folders(str(tmp_path))
    left.set()
    worker.join()
    assert not failed


def test_failure_above_a_folder_is_told_and_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    real, failing = os.fsync, {os.stat(tmp_path / "a").st_ino}

    def fsync(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino in failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            settle_folder(str(folder))
    failing.clear()
    assert {str(folder), str(tmp_path / "a" / "b"), str(tmp_path / "a")} <= synced(folder, monkeypatch)
    assert synced(folder, monkeypatch) == {str(folder)}
