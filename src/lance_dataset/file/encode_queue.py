"""Queue that encodes columns in parallel and writes their pages in the order of submission."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from lance_dataset.errors import SchemaError
from lance_dataset.file.column import ColumnEncoder, EncodedPage
from lance_dataset.threads.pools import cpu_count, cpu_pool
from lance_dataset.threads.tasks import Task
from lancecodec import CodecError

__all__ = ["EncodeQueue"]

#: Encoding fewer bytes than this costs no more than starting a thread, and mostly holds the interpreter's lock.
_LEAST_BYTES = 1 << 20


class _Span(NamedTuple):
    name: str
    encoder: ColumnEncoder
    arrays: Sequence[pa.Array]

    def pages(self) -> Iterator[EncodedPage]:
        try:
            yield from self.encoder.encode(self.arrays)
        except CodecError as error:
            raise SchemaError(f"column {self.name!r}: the data is not a valid Arrow array: {error}") from error


class _Encoded(NamedTuple):
    encoder: ColumnEncoder
    size: int
    pages: list[EncodedPage] | Task[_Span, list[EncodedPage]]


class EncodeQueue:
    """Encodes spans of rows, large ones on worker threads.

    The number of spans that are queued or being encoded is at most the number of threads. The order and time of page
    writes depend only on the submitted spans, not on the duration of encoding, so that equal calls create equal files.

    Parameters
    ----------
    write
        Writes a page; called on the thread that calls this object.
    """

    def __init__(self, write: Callable[[EncodedPage], None]) -> None:
        self._write = write
        self._encoded: deque[_Encoded] = deque()
        self._threads = cpu_count()

    @property
    def bytes(self) -> int:
        """Bytes of the arrays whose pages are not written yet."""
        return sum(each.size for each in self._encoded)

    def encode(self, name: str, encoder: ColumnEncoder, arrays: Sequence[pa.Array], size: int) -> None:
        """Encode a span of `size` bytes; its pages are written now or by a later call.

        Raises
        ------
        SchemaError, UnsupportedError
            This span or an earlier one cannot be stored as declared.
        """
        while any(each.encoder is encoder for each in self._encoded):  # an encoder does one thing at a time
            self._finish_first()
        span = _Span(name, encoder, arrays)
        parallel = self._threads > 1 and size >= _LEAST_BYTES
        if not encoder.is_independent or not (parallel or self._encoded):
            self.finish()
            for page in span.pages():
                self._write(page)
            return
        pages = Task.start(cpu_pool, _all_pages, span) if parallel else _all_pages(span)
        self._encoded.append(_Encoded(encoder, size, pages))
        while self._encoded and (len(self._encoded) > self._threads or isinstance(self._encoded[0].pages, list)):
            self._finish_first()

    def finish(self) -> None:
        """Write all pages; errors are those of `encode`."""
        while self._encoded:
            self._finish_first()

    def discard(self) -> None:
        """Forget all that is not written."""
        for each in self._encoded:
            if isinstance(each.pages, Task):
                each.pages.drop()
        self._encoded.clear()

    def _finish_first(self) -> None:
        pages = self._encoded.popleft().pages
        for page in pages if isinstance(pages, list) else pages.result():
            self._write(page)


def _all_pages(span: _Span) -> list[EncodedPage]:
    return list(span.pages())
