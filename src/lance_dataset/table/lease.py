"""Lease of a table: one process at a time does work that would be wasted if two did it.

A lease is a small file in the folder ``_maintenance`` of the table, or of the branch. Its name has a number; the file
with the highest one counts. To take, renew or release the lease is to write the file with the next number if it is
absent, as commits do, and to remove those before. So of several processes exactly one succeeds, on every store. The
released file stays, so that numbers never begin again.

A lease is valid for some seconds after its file was written, by the clock of the store. The process that has it renews
it meanwhile. If the process is killed, the lease expires and another process takes it over. A process that was stopped
for longer notices that its lease is over when it asks, and stops working.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from lance_dataset.errors import AlreadyExistsError, LanceError, MissingFileError
from lance_dataset.io.base import ObjectStore

__all__ = ["Lease", "LeaseHeldError", "LeaseLostError", "LeaseState", "read_lease"]

_log = logging.getLogger(__name__)
_FOLDER = "_maintenance"
_NAME = re.compile(r"lease-([0-9]{20})\.json")
_TEMPORARY = ".tmp"
#: Age at which temporary files belong to no process that still runs.
_TEMPORARY_SECONDS = 3600.0
#: Stores round times to seconds.
_GRAIN_SECONDS = 1.0
#: Attempts to find a file that other processes replace all the time.
_ATTEMPTS = 20
#: Renewals in the time of a lease, so that two may fail.
_RENEWALS = 3


class LeaseHeldError(LanceError):
    """Another process has the lease.

    Attributes
    ----------
    state
        Its lease.
    """

    def __init__(self, state: LeaseState) -> None:
        super().__init__(f"{state.owner} has the lease of maintenance")
        self.state = state


class LeaseLostError(LanceError):
    """The lease expired before it was renewed, so another process may have it."""


@dataclass(frozen=True)
class LeaseState:
    """Content of the file that counts.

    Attributes
    ----------
    number
        Number of the file.
    owner
        Machine, process and a random name.
    seconds
        Time after the file was written for which the lease is valid.
    released
        True if nobody has the lease.
    written
        When the file was written, in seconds since the epoch, by the clock of the store.
    """

    number: int
    owner: str
    seconds: float
    released: bool
    written: float


def read_lease(store: ObjectStore, root: str) -> LeaseState | None:
    """Return the state of the lease of a table, or of a branch; None if nobody ever had it.

    A file that cannot be understood counts as a lease of a minute.
    """
    for _ in range(_ATTEMPTS):
        files = [(int(found[1]), info) for info in store.list(_folder(root)) if (found := _NAME.fullmatch(info.name))]
        if not files:
            return None
        number, info = max(files, key=lambda each: each[0])
        try:
            return _parsed(number, store.read(info.path), info.modified)
        except MissingFileError:
            continue  # replaced in the meantime
    raise LeaseLostError(f"the lease in {store.uri(_folder(root))} changes too fast to be read")


def _parsed(number: int, content: bytes, written: float) -> LeaseState:
    try:
        value = json.loads(content)
        owner, seconds, released = value["owner"], float(value["seconds"]), value["released"]
        if not isinstance(owner, str) or not isinstance(released, bool) or not 0 < seconds < float("inf"):
            raise ValueError(value)
    except (ValueError, TypeError, KeyError):
        return LeaseState(number, "a process that wrote an unknown form", 60.0, False, written)
    return LeaseState(number, owner, seconds, released, written)


class Lease:
    """Lease that this process has, renewed by a thread until it is released. Use it in a ``with`` block.

    Attributes
    ----------
    taken_over
        Owner of the expired lease that this one follows, None if it was released or there was none.
    """

    taken_over: str | None = None

    def __init__(self, store: ObjectStore, root: str, seconds: float) -> None:
        self._store, self._root, self._seconds = store, root, seconds
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        self._number = 0
        self._valid_until = 0.0
        self._lost = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def take(cls, store: ObjectStore, root: str, seconds: float) -> Lease:
        """Take the lease of a table, or of a branch.

        Parameters
        ----------
        store, root
            The table or branch.
        seconds
            Time after which others may take it over if it is not renewed.

        Raises
        ------
        LeaseHeldError
            Another process has it.
        UnsupportedError
            The store cannot write on condition that a name is free.
        """
        lease = cls(store, root, seconds)
        for _ in range(_ATTEMPTS):
            known = read_lease(store, root)
            if known is not None and not known.released and not lease._is_over(known):
                raise LeaseHeldError(known)
            if lease._advance(0 if known is None else known.number):
                lease.taken_over = None if known is None or known.released else known.owner
                lease._begin()
                return lease
        raise LeaseLostError(f"the lease in {store.uri(_folder(root))} changes too fast to be taken")

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    @property
    def is_lost(self) -> bool:
        """True if others may have the lease by now."""
        return self._lost or time.monotonic() >= self._valid_until

    def check(self) -> None:
        """Raise LeaseLostError if others may have the lease by now."""
        if self.is_lost:
            raise LeaseLostError(
                f"the lease in {self._store.uri(_folder(self._root))} was not renewed for {self._seconds:g} s, so "
                "another process may have it"
            )

    def release(self) -> None:
        """Give the lease back; do nothing if it is lost. A failure only leaves it to expire."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self.is_lost:
            return
        self._lost = True
        try:
            self._write(self._number, released=True)
        except AlreadyExistsError:
            pass  # it was taken over
        except (LanceError, OSError) as error:
            _log.warning("the lease of %s expires later, as it cannot be released: %s", self._uri, error)

    # -- steps -------------------------------------------------------------------------------------------------------

    @property
    def _uri(self) -> str:
        return self._store.uri(self._root)

    def _is_over(self, known: LeaseState) -> bool:
        """Return whether a lease expired, by the clock that dated its file."""
        probe = f"{_folder(self._root)}/{_TEMPORARY}_clock_{uuid.uuid4().hex}"
        self._store.put(probe, b"", durable=False)
        try:
            return self._store.modified(probe) >= known.written + known.seconds + _GRAIN_SECONDS
        except MissingFileError:  # removed by the next owner
            return False
        finally:
            with suppress(LanceError, OSError):
                self._store.delete(probe)

    def _advance(self, number: int) -> bool:
        """Write the file that follows a number, if it is absent; return whether the lease is this process's then."""
        start = time.monotonic()
        try:
            self._write(number, released=False)
        except AlreadyExistsError:
            known = read_lease(self._store, self._root)
            if known is None or known.owner != self._owner or known.number <= number:
                return False
            # written by a renewal whose answer or check failed
            return self._advance(known.number)
        # The number may have been free only because files of higher ones came and this one was removed again; and some
        # guarded stores only ask whether a file exists before they write.
        now = read_lease(self._store, self._root)
        if now is None or (now.number, now.owner) != (number + 1, self._owner):
            return False
        self._number, self._valid_until = number + 1, start + self._seconds
        return True

    def _write(self, number: int, *, released: bool) -> None:
        value = {"owner": self._owner, "seconds": self._seconds, "released": released}
        self._store.put_if_absent(_path(self._root, number + 1), json.dumps(value).encode())
        self._remove_before(number + 1)

    def _remove_before(self, number: int) -> None:
        """Remove the files before a number, and temporary files that killed processes left."""
        try:
            files = list(self._store.list(_folder(self._root)))
            newest = max((info.modified for info in files), default=0.0)
            for info in files:
                found = _NAME.fullmatch(info.name)
                if found:
                    is_old = int(found[1]) < number
                else:  # a temporary file may be of a process that is just writing
                    is_old = info.name.startswith(_TEMPORARY) and info.modified < newest - _TEMPORARY_SECONDS
                if is_old:
                    self._store.delete(info.path)
        except (LanceError, OSError) as error:
            _log.debug("old leases of %s stay: %s", self._uri, error)

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._renew, name="lance-lease", daemon=True)
        self._thread.start()

    def _renew(self) -> None:
        while not self._stop.wait(self._seconds / _RENEWALS):
            try:
                if not self._advance(self._number):
                    self._lost = True
            except (LanceError, OSError) as error:
                _log.warning("the lease of %s cannot be renewed: %s", self._uri, error)
            if self.is_lost:
                self._lost = True  # for good: a later file of this process would take it from another one
                return


def _folder(root: str) -> str:
    return f"{root}/{_FOLDER}"


def _path(root: str, number: int) -> str:
    return f"{_folder(root)}/lease-{number:020d}.json"
