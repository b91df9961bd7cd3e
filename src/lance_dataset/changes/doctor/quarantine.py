"""Quarantine: a folder of the dataset for files that a repair moves away, with a journal of where they were.

A file is copied, and only then removed; the journal names it before. So an interrupted repair loses nothing, and every
move can be undone by hand.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
from collections.abc import Callable, Sequence

from lance_dataset.changes.doctor.sizes import file_size
from lance_dataset.errors import CorruptFileError, MissingFileError
from lance_dataset.events import emit
from lance_dataset.io.base import ObjectStore
from lance_dataset.threads.pools import storage_pool
from lance_dataset.threads.streams import stream

__all__ = ["QUARANTINE_FOLDER", "Quarantine"]

QUARANTINE_FOLDER = "_quarantine"
_JOURNAL = "journal.jsonl"
_AHEAD = 15
#: Files that are noted in the journal at a time.
_BATCH = 1000


class Quarantine:
    """Files that one repair of a dataset moves away.

    Parameters
    ----------
    store, root
        The main branch.
    """

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store = store
        self._root = root
        now = dt.datetime.now(dt.timezone.utc)
        self._folder = f"{QUARANTINE_FOLDER}/{now:%Y%m%dT%H%M%S}Z-{secrets.token_hex(3)}"
        self._lines: list[str] = []

    @property
    def folder(self) -> str | None:
        """The folder below the root of the main branch; None as long as nothing was noted."""
        return self._folder if self._lines else None

    def note(self, what: str, why: str, **facts: object) -> None:
        """Note something else than a move in the journal, such as a new version."""
        self._add({"what": what, **facts, "why": why})
        self._write()

    def move(self, paths: Sequence[str], what: str, why: str, each: Callable[[], object] = lambda: None) -> list[str]:
        """Move files to the quarantine.

        Parameters
        ----------
        paths
            The files, below the root of the main branch.
        what, why
            Kind of the files and reason, for the journal.
        each
            Is called after each file.

        Returns
        -------
        list of str
            The files that were moved; others do not exist any more.

        Raises
        ------
        CorruptFileError
            A copy has another size than the file, which stays then.
        LanceError, OSError
            A file cannot be moved. Those before have been moved.
        """
        moved: list[str] = []
        for start in range(0, len(paths), _BATCH):
            batch = paths[start : start + _BATCH]
            if len(paths) == 1 and not self._store.exists(f"{self._root}/{batch[0]}"):
                return []
            for path in batch:
                self._add({"what": what, "from": path, "to": f"{self._folder}/{path}", "why": why})
            self._write()
            for path, done in zip(batch, stream(self._move, batch, ahead=_AHEAD, pool=storage_pool), strict=True):
                moved += [path] if done else []
                each()
        for folder in {path.rpartition("/")[0] for path in moved}:
            self._store.sync(f"{self._root}/{folder}" if folder else self._root)
        return moved

    def _move(self, path: str) -> bool:
        source, target = f"{self._root}/{path}", f"{self._root}/{self._folder}/{path}"
        try:
            self._store.copy(source, target)
        except MissingFileError:
            return False
        sizes = [file_size(self._store, each) for each in (source, target)]
        if sizes[0] != sizes[1]:
            self._store.delete(target)
            raise CorruptFileError(
                f"{target}: has {sizes[1]} bytes, but {source} has {sizes[0]}, so it was not removed"
            )
        self._store.delete(source)
        emit("file_audit", mode="delete", type="quarantined", path=source)
        return True

    def _add(self, entry: dict[str, object]) -> None:
        now = dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds")
        self._lines.append(json.dumps({"time": now, **entry}, ensure_ascii=False))

    def _write(self) -> None:
        text = "".join(f"{line}\n" for line in self._lines)
        self._store.put(f"{self._root}/{self._folder}/{_JOURNAL}", text.encode())
