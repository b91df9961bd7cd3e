"""Tests of copies of objects within a store."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lance_dataset.errors import MissingFileError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore

STORES = {
    "mapped": LocalStore(),
    "read": LocalStore(mmap=False, fsync=False),
    "memory": MemoryStore(),
}


@pytest.mark.parametrize("store", list(STORES.values()), ids=list(STORES))
def test_copy(store: ObjectStore, tmp_path: Path) -> None:
    root = str(tmp_path)
    content = os.urandom(9 << 20)
    store.put(f"{root}/a", content)
    store.put(f"{root}/b", b"other")
    opened = store.open_input(f"{root}/b")
    for target in ("b", "new/folder/c"):
        store.copy(f"{root}/a", f"{root}/{target}")
        assert store.read(f"{root}/{target}") == content
    assert opened.read(0, 5).to_pybytes() == b"other"
    with pytest.raises(MissingFileError):
        store.copy(f"{root}/none", f"{root}/d")
    assert sorted(info.path for info in store.list_tree(root)) == [
        f"{root}/{name}" for name in ("a", "b", "new/folder/c")
    ]
