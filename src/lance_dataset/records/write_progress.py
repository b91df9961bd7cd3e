"""Hooks that are told of each fragment of a write, and the ones that keep files of it."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from lance_dataset.arguments import check_texts
from lance_dataset.io.resolve import resolve
from lance_dataset.records.fragment import FragmentMetadata

__all__ = [
    "FileSystemFragmentWriteProgress",
    "FragmentWriteProgress",
    "NoopFragmentWriteProgress",
    "checked_progress",
]


class FragmentWriteProgress(ABC):
    """Base class of hooks for `write_dataset` and `write_fragments`. Subclasses implement `begin` and `complete`.

    An error that a hook raises ends the write, whose files are then removed.
    """

    @abstractmethod
    def begin(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """Do something before the first row of a fragment is written.

        Parameters
        ----------
        fragment
            The fragment, still without files and rows. Its id is 0 unless it is known before the commit.
        **kwargs
            Not used.
        """

    @abstractmethod
    def complete(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """Do something when the files of a fragment are on the disk. No version refers to them yet.

        Parameters
        ----------
        fragment
            The fragment with its files and its number of rows.
        **kwargs
            Not used.
        """


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Hooks that do nothing."""

    def begin(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """Do nothing."""

    def complete(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """Do nothing."""


class FileSystemFragmentWriteProgress(FragmentWriteProgress):
    """Hooks that keep a file for each fragment that is being written, so that others see what is in progress.

    ``fragment_<id>.in_progress`` exists while a fragment is written; ``fragment_<id>.json`` describes the fragment.

    Parameters
    ----------
    base_uri
        Path or URI of the folder of the files. It is created if it does not exist.
    metadata
        Texts to put into the files, such as the name of the worker.
    """

    PROGRESS_EXT: str = ".in_progress"

    def __init__(self, base_uri: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
        self._store, self._root = resolve(base_uri)
        self.base_uri = os.fspath(base_uri)
        self.metadata = check_texts("metadata", {} if metadata is None else metadata)

    def _put(self, name: str, content: dict[str, Any]) -> None:
        self._store.put(f"{self._root}/{name}", json.dumps(content).encode())

    def begin(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """Write the two files."""
        self._put(f"fragment_{fragment.id}{self.PROGRESS_EXT}", {"fragment_id": fragment.id, "metadata": self.metadata})
        self._put(f"fragment_{fragment.id}.json", fragment.to_json())

    def complete(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        """Remove the file that says the fragment is in progress; describe the fragment in the other one."""
        self._put(f"fragment_{fragment.id}.json", fragment.to_json())
        self._store.delete(f"{self._root}/fragment_{fragment.id}{self.PROGRESS_EXT}")


class _Numbered(FragmentWriteProgress):
    """Hooks that are told the id of a fragment that is known before the commit."""

    def __init__(self, progress: FragmentWriteProgress, fragment_id: int) -> None:
        self._progress = progress
        self._id = fragment_id

    def _with_id(self, fragment: FragmentMetadata) -> FragmentMetadata:
        fragment.id = self._id
        return fragment

    def begin(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        self._progress.begin(self._with_id(fragment))

    def complete(self, fragment: FragmentMetadata, **kwargs: object) -> None:
        self._progress.complete(self._with_id(fragment))


def checked_progress(progress: object, fragment_id: int = 0) -> FragmentWriteProgress | None:
    """Return the hooks of a write; TypeError for another value.

    Parameters
    ----------
    progress
        What the user passed; None for no hooks.
    fragment_id
        Id of the only fragment, if it is known.
    """
    if progress is None:
        return None
    if not isinstance(progress, FragmentWriteProgress):
        raise TypeError(
            f"progress must be a lance_dataset.progress.FragmentWriteProgress, not {progress!r}; derive a class from "
            "it with the methods begin and complete"
        )
    return _Numbered(progress, fragment_id) if fragment_id else progress
