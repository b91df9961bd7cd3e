"""Columns encoded at the same time, whose pages are written in the order in which they were handed in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import pyarrow as pa

from lance_dataset.errors import SchemaError
from lance_dataset.file.column import ColumnEncoder, EncodedPage
from lance_dataset.file.threads import cpu_count, shared_pool
from lancecodec import CodecError

__all__ = ["EncodeQueue"]

#: Encoding less than this costs hardly more than what threads cost, and much of it holds the interpreter's lock.
_LEAST_BYTES = 1 << 20


@dataclass(frozen=True)
class _Task:
    encoder: ColumnEncoder
    size: int
    pages: list[EncodedPage] | Future[list[EncodedPage]]


class EncodeQueue:
    """Encodes spans of rows, large ones on worker threads.

    At most as many spans wait or are encoded as there are threads. When pages are written depends on what is handed in
    alone, not on how long encoding takes, so that equal calls make equal files.

    Parameters
    ----------
    write
        Writes a page; called on the thread that calls this object.
    """

    def __init__(self, write: Callable[[EncodedPage], None]) -> None:
        self._write = write
        self._tasks: deque[_Task] = deque()
        self._threads = cpu_count()

    @property
    def bytes(self) -> int:
        """Bytes of the arrays whose pages are not written yet."""
        return sum(task.size for task in self._tasks)

    def encode(self, name: str, encoder: ColumnEncoder, arrays: Sequence[pa.Array], size: int) -> None:
        """Encode a span of `size` bytes and have its pages written, now or by a later call.

        Raises
        ------
        SchemaError, UnsupportedError
            This span, or one handed in before, cannot be stored as declared.
        """
        while any(task.encoder is encoder for task in self._tasks):  # an encoder does one thing at a time
            self._finish_first()
        if not encoder.is_independent:
            self.finish()
            for page in _encode(name, encoder, arrays):
                self._write(page)
            return
        pages: list[EncodedPage] | Future[list[EncodedPage]]
        # a worker that waits for other workers may wait forever
        if self._threads > 1 and size >= _LEAST_BYTES and not shared_pool.is_worker:
            pages = shared_pool().submit(_encode_all, name, encoder, arrays)
        else:
            pages = _encode_all(name, encoder, arrays)
        self._tasks.append(_Task(encoder, size, pages))
        while self._tasks and (len(self._tasks) > self._threads or isinstance(self._tasks[0].pages, list)):
            self._finish_first()

    def finish(self) -> None:
        """Write all pages; errors are those of `encode`."""
        while self._tasks:
            self._finish_first()

    def discard(self) -> None:
        """Forget all that is not written."""
        for task in self._tasks:
            if isinstance(task.pages, Future):
                task.pages.cancel()
        self._tasks.clear()

    def _finish_first(self) -> None:
        pages = self._tasks.popleft().pages
        for page in pages if isinstance(pages, list) else pages.result():
            self._write(page)


def _encode_all(name: str, encoder: ColumnEncoder, arrays: Sequence[pa.Array]) -> list[EncodedPage]:
    return list(_encode(name, encoder, arrays))


def _encode(name: str, encoder: ColumnEncoder, arrays: Sequence[pa.Array]) -> Iterator[EncodedPage]:
    try:
        yield from encoder.encode(arrays)
    except CodecError as error:
        raise SchemaError(f"column {name!r}: the data is no valid Arrow array: {error}") from error
