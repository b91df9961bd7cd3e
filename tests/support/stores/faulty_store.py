"""Object store in which one chosen call stops the writer or fails."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import lance_dataset
from lance_dataset.errors import AlreadyExistsError
from lance_dataset.io import resolve
from lance_dataset.io.base import InputFile, ObjectStore, OutputFile
from lance_dataset.io.memory import MemoryStore

__all__ = ["Crash", "Failure", "Fault", "FaultyStore", "copy_of", "session_of"]


class Crash(BaseException):
    """End of the process. Nothing may catch this and go on; every later call of the store raises it again."""


class Failure(OSError):
    """Error of a call that fails."""


@dataclass(frozen=True)
class Fault:
    """Fault and the call at which it happens.

    Attributes
    ----------
    at
        Number of the call, starting at 0.
    kind
        ``crash``: the writer is stopped. ``torn``: it is stopped, and unclosed files have half of the written bytes.
        ``fail``: the call raises OSError. ``broken``: so do all calls after it. ``exists``: a conditional put takes
        effect, but reports that the object existed (its request was repeated after the answer was lost).
    after
        True if the call takes effect first.
    """

    at: int
    kind: str
    after: bool = False


class FaultyStore(ObjectStore):
    """Store that forwards all calls but one to another store.

    Parameters
    ----------
    inner
        Store of the objects.
    fault
        Fault to cause; None only counts the calls.
    in_order
        True if listings are declared ordered; if not, writers keep the newest version in a hint.

    Attributes
    ----------
    calls
        Calls so far.
    dead
        True if the writer was stopped.
    """

    def __init__(self, inner: ObjectStore, fault: Fault | None = None, *, in_order: bool = True) -> None:
        self.inner = inner
        self.fault = fault
        self.calls: list[str] = []
        self._stopped = threading.Event()  # shared with the stores of tables, which are copies
        self.lists_in_order = in_order
        self._written: dict[str, bytearray] = {}
        self._lock = threading.RLock()

    # These call the store itself, so that the calls below are counted.
    for_table = ObjectStore.for_table
    open_own = ObjectStore.open_own
    put_new = ObjectStore.put_new

    @property
    def dead(self) -> bool:
        return self._stopped.is_set()

    def call(self, name: str, path: str, effect: Callable[[], Any]) -> Any:
        """Count a call, and make it unless it is the faulty one."""
        with self._lock:
            if self.dead:
                raise Crash(f"{name} {path} of a process that is gone")
            number = len(self.calls)
            self.calls.append(f"{name} {path}")
            fault = self.fault
            if fault is None or number < fault.at or (number > fault.at and fault.kind != "broken"):
                return effect()
            if fault.kind == "exists":
                result = effect()
                if name == "put_if_absent":
                    raise AlreadyExistsError(f"{path} exists already")
                return result
            if fault.after and number == fault.at:
                effect()
            if fault.kind in ("fail", "broken"):
                raise Failure(5, "this call fails", path)
            self._stopped.set()
            if fault.kind == "torn":
                for torn, content in self._written.items():
                    self.inner.put(torn, bytes(content[: len(content) // 2]))
            raise Crash(f"{name} {path}")

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        return _Input(self, path, self.call("open_input", path, lambda: self.inner.open_input(path, size)))

    def open_output(self, path: str) -> OutputFile:
        output = self.call("open_output", path, lambda: self.inner.open_output(path))
        return _Output(self, path, output, self._written)

    def uri(self, path: str) -> str:
        return self.inner.uri(path)


def _counted(name: str) -> Callable[..., Any]:
    def method(self: FaultyStore, path: str, *args: Any, **kwargs: Any) -> Any:
        def effect() -> Any:
            result = getattr(self.inner, name)(path, *args, **kwargs)
            return iter(list(result)) if isinstance(result, Iterator) else result

        return self.call(name, path, effect)

    return method


for _name, _ in inspect.getmembers(ObjectStore, inspect.isfunction):
    if not _name.startswith("_") and _name not in FaultyStore.__dict__:
        setattr(FaultyStore, _name, _counted(_name))
FaultyStore.__abstractmethods__ = frozenset()


class _Input:
    def __init__(self, store: FaultyStore, path: str, inner: InputFile) -> None:
        self._store, self.path, self._inner = store, path, inner
        self.size = inner.size
        self.mapped = None
        self.is_remote = False

    def read(self, offset: int, length: int) -> pa.Buffer:
        return self._store.call("read", self.path, lambda: self._inner.read(offset, length))

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        return self._store.call("read_ranges", self.path, lambda: self._inner.read_ranges(ranges))

    def hold(self, ranges: Sequence[tuple[int, int]]) -> None:
        pass

    def holds(self, offset: int, length: int) -> bool:
        return False

    def blocks(self) -> None:
        pass

    def discard(self, offset: int, length: int) -> None:
        self._inner.discard(offset, length)

    def close(self) -> None:
        self._inner.close()


class _Output:
    def __init__(self, store: FaultyStore, path: str, inner: OutputFile, written: dict[str, bytearray]) -> None:
        self._store, self._path, self._inner, self._written = store, path, inner, written
        written[path] = bytearray()

    def write(self, data: Any) -> None:
        self.write_many((data,))

    def write_many(self, parts: Sequence[Any]) -> None:
        def effect() -> None:
            self._inner.write_many(parts)
            for part in parts:
                self._written[self._path] += memoryview(part).cast("B")

        self._store.call("write", self._path, effect)

    def tell(self) -> int:
        return self._inner.tell()

    def close(self) -> None:
        def effect() -> None:
            self._inner.close()
            self._written.pop(self._path, None)

        self._store.call("close", self._path, effect)

    def abort(self) -> None:
        def effect() -> None:
            self._inner.abort()
            self._written.pop(self._path, None)

        self._store.call("abort", self._path, effect)


def copy_of(store: MemoryStore) -> MemoryStore:
    """Return an independent store with the same objects."""
    copied = MemoryStore()
    copied._objects = dict(store._objects)
    return copied


def session_of(store: ObjectStore) -> lance_dataset.Session:
    """Return a session whose ``memory://`` URIs are paths of a store."""
    session = lance_dataset.Session()
    resolve._memory_stores[session] = store
    return session
