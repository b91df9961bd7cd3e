"""Sizes of files of a dataset."""

from __future__ import annotations

from lance_dataset.errors import LanceError
from lance_dataset.io.base import ObjectStore

__all__ = ["file_size", "known_size"]


def file_size(store: ObjectStore, path: str) -> int:
    """Return the size of a file in bytes.

    Raises
    ------
    LanceError, OSError
        The file cannot be opened.
    """
    source = store.open_input(path)
    try:
        return source.size
    finally:
        source.close()


def known_size(store: ObjectStore, path: str) -> int | None:
    """Return the size of a file in bytes, None if it cannot be opened."""
    try:
        return file_size(store, path)
    except (LanceError, OSError):
        return None
