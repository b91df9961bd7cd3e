"""Writes of objects of any size to a cloud store, without holding them in memory."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import obstore
import pyarrow as pa

from lance_dataset.errors import InvalidInputError, LanceError
from lance_dataset.io.cloud_errors import CLIENT_ERRORS, translated
from lance_dataset.io.statistics import IOCounter

__all__ = ["CloudOutput", "part_size"]

#: With parts of this size the largest data file of `write_dataset` (90 GiB) fits into the 10,000 parts of S3.
_PART = 10 << 20
_SMALLEST_PART = 5 << 20
_MAX_PARTS = 10_000
_PARALLEL_PARTS = 6
_POLL_SECONDS = 0.2


def part_size() -> int:
    """Return the size of a part of an upload: 10 MiB, or ``LANCE_INITIAL_UPLOAD_SIZE`` if that is more."""
    text = os.environ.get("LANCE_INITIAL_UPLOAD_SIZE", "").strip()
    if not text:
        return _PART
    if not text.isdecimal() or int(text) < _SMALLEST_PART:
        raise InvalidInputError(
            f"LANCE_INITIAL_UPLOAD_SIZE must be a number of at least {_SMALLEST_PART}, not {text!r}"
        )
    return max(int(text), _PART)


class CloudOutput:
    """New object that is invisible before `close`.

    An object of up to one part is kept in memory and written in one request. A longer one is uploaded in parts while it
    is written.

    Parameters
    ----------
    client
        Store of the client library.
    key
        Name of the object in it.
    uri
        URI for messages.
    put_whole
        Function that writes a short object in one request, and fails if the object exists.
    check_new
        Function that raises if the object exists; called before the first part of a long object is sent.
    counter
        Counter of the parts; `put_whole` counts its own writes.
    """

    _open = False
    _upload: _Upload | None = None

    def __init__(
        self,
        client: Any,
        key: str,
        uri: str,
        put_whole: Callable[[bytes], None],
        check_new: Callable[[], None],
        counter: IOCounter | None = None,
    ) -> None:
        self._counter = IOCounter() if counter is None else counter
        self._client = client
        self._key = key
        self._uri = uri
        self._put_whole = put_whole
        self._check_new = check_new
        self._part_size = part_size()
        self._part = bytearray()
        self._sent = 0
        self._open = True

    def write(self, data: bytes | memoryview | pa.Buffer) -> None:
        """Append bytes."""
        if not self._open:
            raise InvalidInputError(f"{self._uri} is closed; it cannot be written any more")
        view = memoryview(data).cast("B")
        start = 0
        while len(view) - start >= (space := self._part_size - len(self._part)):
            self._part += view[start : start + space]
            start += space
            self._send_part()
        self._part += view[start:]

    def write_many(self, parts: Sequence[bytes | memoryview | pa.Buffer]) -> None:
        """Append several buffers."""
        for part in parts:
            self.write(part)

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._sent + len(self._part)

    def close(self) -> None:
        """Finish the object: it is complete when this returns."""
        if not self._open:
            return
        try:
            if self._upload is None:
                self._put_whole(bytes(self._part))
            else:
                if self._part:
                    self._upload.send(bytes(self._part))
                    self._counter.add_write(len(self._part))
                self._upload.finish()
        except BaseException:
            self.abort()
            raise
        self._open = False
        self._part = bytearray()

    def abort(self) -> None:
        """Drop the object and the parts that were uploaded."""
        upload, self._upload = self._upload, None
        if self._open and upload is not None:
            upload.abort()
        self._open = False
        self._part = bytearray()

    def _send_part(self) -> None:
        if self._sent >= self._part_size * _MAX_PARTS:
            raise InvalidInputError(
                f"{self._uri}: an object has at most {_MAX_PARTS} parts of {self._part_size} bytes; write smaller "
                "files (max_bytes_per_file) or set LANCE_INITIAL_UPLOAD_SIZE in the environment to more bytes per part"
            )
        if self._upload is None:
            self._check_new()
            self._upload = _Upload(self._client, self._key, self._uri, self._part_size)
        self._upload.send(bytes(self._part))
        self._counter.add_write(len(self._part))
        self._sent += len(self._part)
        self._part = bytearray()

    def __del__(self) -> None:
        # when the interpreter exits, the upload thread does not run any more; its upload ends with the process
        if not sys.is_finalizing():
            self.abort()


class _Abort(Exception):
    """End of an upload at the request of the writer; the client library drops its parts."""


class _Upload:
    """Thread that hands parts to the client library, which sends several at a time.

    It is not one of a pool: it lives as long as the object is open, and must not keep the process from ending.
    """

    def __init__(self, client: Any, key: str, uri: str, size: int) -> None:
        self._uri = uri
        self._parts: queue.Queue[bytes | _Abort | None] = queue.Queue(1)
        self._error: BaseException | None = None
        arguments = (client, key, size)
        self._thread = threading.Thread(target=self._run, args=arguments, name="lance-upload", daemon=True)
        self._thread.start()

    def send(self, part: bytes | _Abort | None) -> None:
        """Hand over a part, and wait while earlier ones are being sent; raise the error of the upload."""
        while self._thread.is_alive():
            try:
                self._parts.put(part, timeout=_POLL_SECONDS)
                return
            except queue.Full:
                continue
        self._raise_failure()

    def finish(self) -> None:
        """Wait until the object is complete."""
        self.send(None)
        self._thread.join()
        self._raise_failure()

    def abort(self) -> None:
        """Wait until the parts are dropped."""
        while self._thread.is_alive():
            try:
                self._parts.put(_Abort(), timeout=_POLL_SECONDS)
                break
            except queue.Full:
                continue
        self._thread.join()

    def _raise_failure(self) -> None:
        if isinstance(self._error, LanceError):
            raise self._error
        if isinstance(self._error, CLIENT_ERRORS):
            raise translated(self._error, self._uri, "writing") from self._error
        if self._error is not None:
            raise self._error

    def _run(self, client: Any, key: str, size: int) -> None:
        try:
            obstore.put(
                client, key, self._received(), use_multipart=True, chunk_size=size, max_concurrency=_PARALLEL_PARTS
            )
        except BaseException as error:
            self._error = error

    def _received(self) -> Iterator[bytes]:
        while (part := self._parts.get()) is not None:
            if isinstance(part, _Abort):
                raise part
            yield part
