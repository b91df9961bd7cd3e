"""Object store in the memory of the process."""

# ruff: noqa: D102 - the methods are documented in lance_dataset.io.base

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_dataset.errors import AlreadyExistsError, CorruptFileError, InvalidInputError, MissingFileError
from lance_dataset.io.base import InputFile, ObjectInfo, ObjectStore, OutputFile
from lance_dataset.io.statistics import IOCounter
from lance_dataset.locks import SharedLock

__all__ = ["MemoryInput", "MemoryStore"]


class MemoryStore(ObjectStore):
    """Objects kept in a dictionary; safe to use from several threads.

    Paths start with a slash; ``memory://a/b`` is the path ``/a/b``.
    """

    lists_in_order = True

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, float]] = {}
        self._lock = SharedLock()

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        content = self._content(path)
        if size is not None and size != len(content):
            raise CorruptFileError(f"{self.uri(path)}: has {len(content)} bytes, but its manifest says {size}")
        return MemoryInput(self.uri(path), content, self.statistics)

    def open_output(self, path: str) -> OutputFile:
        if self.exists(path):
            raise AlreadyExistsError(f"{self.uri(path)} exists already")
        return _MemoryOutput(self, path)

    def read(self, path: str) -> bytes:
        content = self._content(path)
        self.statistics.add_read(len(content))
        return content

    def _content(self, path: str) -> bytes:
        with self._lock:
            found = self._objects.get(path)
        if found is None:
            raise MissingFileError(f"{self.uri(path)} does not exist")
        return found[0]

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        entry = (bytes(data), time.time())
        with self._lock:
            self._objects[path] = entry
        self.statistics.add_write(len(data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        entry = (bytes(data), time.time())
        with self._lock:
            if self._objects.setdefault(path, entry) is not entry:
                raise AlreadyExistsError(f"{self.uri(path)} exists already")
        self.statistics.add_write(len(data))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        start = prefix.rstrip("/") + "/"
        return (info for info in self.list_tree(prefix) if "/" not in info.path[len(start) :])

    def list_tree(self, prefix: str) -> Iterator[ObjectInfo]:
        start = prefix.rstrip("/") + "/"
        with self._lock:
            found = [
                ObjectInfo(path, len(content), modified)
                for path, (content, modified) in self._objects.items()
                if path.startswith(start)
            ]
        return iter(sorted(found, key=lambda info: info.path))

    def exists(self, path: str) -> bool:
        with self._lock:
            return path in self._objects

    def delete(self, path: str) -> None:
        with self._lock:
            self._objects.pop(path, None)

    def delete_tree(self, prefix: str) -> None:
        start = prefix.rstrip("/") + "/"
        with self._lock:
            for path in [path for path in self._objects if path.startswith(start)]:
                del self._objects[path]

    def uri(self, path: str) -> str:
        return f"memory:/{path}"


class MemoryInput:
    """Object whose bytes are in memory.

    Parameters
    ----------
    path
        Path for error messages.
    content
        Bytes of the object.
    counter
        Counter of the reads.
    """

    def __init__(self, path: str, content: bytes, counter: IOCounter) -> None:
        self._path = path
        self._counter = counter
        self._buffer = pa.py_buffer(content)

    @property
    def path(self) -> str:
        return self._path

    @property
    def size(self) -> int:
        return self._buffer.size

    @property
    def mapped(self) -> pa.Buffer:
        return self._buffer

    @property
    def is_remote(self) -> bool:
        return False

    def read(self, offset: int, length: int) -> pa.Buffer:
        if offset < 0 or length < 0 or offset + length > self._buffer.size:
            raise CorruptFileError(
                f"{self._path}: bytes {offset} to {offset + length} lie outside the {self._buffer.size} bytes it has"
            )
        self._counter.add_read(length)
        return self._buffer.slice(offset, length)

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        return [self.read(offset, length) for offset, length in ranges]

    def scatter(self, scattered: bool) -> None:
        pass

    def will_need(self, ranges: Sequence[tuple[int, int]]) -> bool:
        return False

    def hold(self, ranges: Sequence[tuple[int, int]]) -> None:
        pass

    def holds(self, offset: int, length: int) -> bool:
        return False

    def blocks(self) -> None:
        pass

    def discard(self, offset: int, length: int) -> None:
        pass

    def close(self) -> None:
        pass


class _MemoryOutput:
    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store = store
        self._path = path
        self._content = bytearray()
        self._open = True

    def write(self, data: bytes | memoryview | pa.Buffer) -> None:
        if not self._open:
            raise InvalidInputError(f"{self._store.uri(self._path)} is closed; it cannot be written any more")
        self._content += memoryview(data).cast("B")

    def write_many(self, parts: Sequence[bytes | memoryview | pa.Buffer]) -> None:
        for part in parts:
            self.write(part)

    def tell(self) -> int:
        return len(self._content)

    def close(self) -> None:
        if self._open:
            self._open = False
            self._store.put_if_absent(self._path, bytes(self._content))

    def abort(self) -> None:
        self._open = False
        self._content.clear()
