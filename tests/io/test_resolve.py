"""Tests of stores by URI, and of safe paths below a root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lance_dataset.errors import CorruptFileError, InvalidInputError, UnsupportedError
from lance_dataset.io.base import safe_join
from lance_dataset.io.local import LocalStore
from lance_dataset.io.resolve import resolve


class Session:
    pass


def test_local_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    for location in (tmp_path / "a b", f"{tmp_path}/a b/", f"file://{tmp_path}/a%20b", "a b", "./x/../a b"):
        store, root = resolve(location)
        assert isinstance(store, LocalStore)
        assert root == f"{tmp_path}/a b"
    assert resolve("file-object-store:///t")[1] == "/t"
    assert resolve("file://localhost/t")[1] == "/t"
    assert resolve("~/t")[1] == "/home/someone/t"
    assert resolve("file:/t")[1] == resolve("FILE:///t")[1] == "/t"
    assert resolve("./odd:name")[1] == f"{tmp_path}/odd:name"
    assert resolve("x/odd:name")[1] == f"{tmp_path}/x/odd:name"
    assert resolve("/")[1] == ""


def test_memory_belongs_to_the_session() -> None:
    session = Session()
    store, root = resolve("memory://a/b/", session=session)
    assert root == "/a/b"
    assert store.uri(root) == "memory://a/b"
    store.put("/a/b/c", b"here")
    same, others = resolve("memory://a/b", session=session)[0], [Session(), Session(), None]
    assert same.read("/a/b/c") == b"here"
    assert not any(resolve("memory://a/b", session=other)[0].exists("/a/b/c") for other in others)
    assert same.statistics is not store.statistics


@pytest.mark.parametrize(
    "uri", ["foo://x", "ftp://host/x", "https://host/x", "dbfs:/x", "odd:name", "s3:/bucket/x", "memory:x"]
)
def test_other_schemes(uri: str) -> None:
    with pytest.raises(ValueError, match="No object store provider found for scheme") as caught:
        resolve(uri)
    assert isinstance(caught.value, UnsupportedError)
    assert "'s3://...'" in str(caught.value)


@pytest.mark.parametrize("uri", ["", "a\0b", "file://host/x", "file:///a%00b", "file:x", "file://x"])
def test_bad_locations(uri: str) -> None:
    with pytest.raises(InvalidInputError):
        resolve(uri)


def test_options(tmp_path: Path) -> None:
    store, root = resolve(tmp_path, {"MMAP": "false", "local_fsync": "false", "other": "x"})
    store.put(f"{root}/f", b"abc")
    assert store.open_input(f"{root}/f").mapped is None
    with pytest.raises(InvalidInputError, match="mmap"):
        resolve(tmp_path, {"mmap": "perhaps"})


def test_fsync_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = {name: getattr(os, name) for name in ("fsync", "fdatasync")}
    for name, call in real.items():
        monkeypatch.setattr(os, name, lambda fd, call=call: (calls.append(fd), call(fd))[1])

    def write_all(folder: str, options: dict[str, str]) -> int:
        calls.clear()
        store, root = resolve(f"{tmp_path}/{folder}", options)
        store.put(f"{root}/a{len(options)}", b"x")
        store.put_if_absent(f"{root}/b{len(options)}", b"x")
        output = store.open_output(f"{root}/c{len(options)}")
        output.write(b"x")
        output.close()
        return len(calls)

    assert write_all("off", {"local_fsync": "false"}) == 0
    # Three files, each with a sync of its folder; the first time also the folders that contain the new one.
    assert write_all("on", {}) >= 7
    assert write_all("on", {"mmap": "false"}) == 6


@pytest.mark.parametrize("path", ["", "/abs", "../x", "a/../../x", "a//b", "./a", "a/.", "a\\b", "a\0b", "a/"])
def test_paths_stay_inside(path: str) -> None:
    with pytest.raises(CorruptFileError, match="may not refer"):
        safe_join("/root/data", path)


def test_plain_paths_are_joined() -> None:
    assert safe_join("/root/data", "a.lance") == "/root/data/a.lance"
    assert safe_join("/root/data", "..a/b..c") == "/root/data/..a/b..c"
