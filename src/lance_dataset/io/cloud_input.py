"""Ranged reads of objects in a cloud store: few requests, many of them at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import obstore
import pyarrow as pa

from lance_dataset.errors import CorruptFileError, InvalidInputError, StorageError
from lance_dataset.io.blocks import KnownBlocks
from lance_dataset.io.cloud_errors import CLIENT_ERRORS, check_process, is_passing, status_of, translated
from lance_dataset.io.held import HeldParts
from lance_dataset.io.ranges import MergedRange, merge_ranges, split_merged
from lance_dataset.io.secrets import scrubbed
from lance_dataset.io.statistics import IOCounter
from lance_dataset.limits import check_file_size
from lance_dataset.threads.pools import request_pool
from lancecodec.blocks import FileBlocks

__all__ = ["CloudInput", "CloudObject"]

#: Longer ranges are fetched in parallel, in pieces of this size. Merged ranges do not become longer than this.
_PIECE = 8 << 20
_ALIGNMENT = 64
_RANGE_NOT_SATISFIABLE = 416


@dataclass(frozen=True)
class CloudObject:
    """Name of an object and the means to request it.

    Attributes
    ----------
    client
        Store of the client library.
    key
        Name in the store.
    uri
        URI for messages.
    block_size, download_retries
        See `lance_dataset.io.cloud_options.CloudOptions`.
    suffix_ranges
        True if the store can return the end of an object whose size is unknown.
    counter
        Counter of the reads.
    """

    client: Any
    key: str
    uri: str
    block_size: int
    download_retries: int
    suffix_ranges: bool
    counter: IOCounter = field(default_factory=IOCounter)

    def head(self) -> Any:
        """Return the metadata of the object: ``size``, ``e_tag``, ``last_modified``."""
        check_process(self.uri)
        return self.client.head(self.key)

    def get(self, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Return metadata and content; retry a download that breaks off."""
        check_process(self.uri)
        failures = 0
        while True:
            try:
                answer = obstore.get(self.client, self.key, options=options)
                if options is None:
                    check_file_size(answer.meta["size"], self.uri)
                content = answer.buffer()
                self.counter.add_read(len(content))
                return answer.meta, content
            except CLIENT_ERRORS as error:
                failures += 1
                if failures > self.download_retries or not is_passing(error):
                    raise

    def open(self, size: int | None) -> CloudInput:
        """Open the object and fetch its end, in one request if the store allows that.

        Raises
        ------
        MissingFileError
            The object does not exist.
        CorruptFileError
            `size` is given and differs from the size of the object.
        """
        return self._open(size, self.block_size)[0]

    def open_whole(self, size: int) -> tuple[CloudInput, Callable[[], None]]:
        """Open the object and fetch all of it with one request; see `ObjectStore.open_whole`."""
        opened, content = self._open(size, size)
        return opened, opened._held.hold([(0, content)])

    def _open(self, size: int | None, wanted: int) -> tuple[CloudInput, pa.Buffer]:
        """Open the object and fetch at least some bytes of its end; return them too."""
        wanted = max(wanted, self.block_size)
        try:
            meta, end = self._end(size, wanted)
        except CLIENT_ERRORS as error:
            raise translated(error, self.uri, "reading") from error
        found = meta["size"]
        if size is not None and size != found:
            raise CorruptFileError(f"{self.uri}: has {found} bytes, but its manifest says {size}")
        if len(end) != min(wanted, found):
            raise StorageError(f"reading {self.uri} failed: the store sent {len(end)} bytes of its end; try again")
        content = _aligned(end, found - len(end))
        last = content
        if len(end) > self.block_size:  # a copy, so that the rest can be released
            last = _aligned(content.slice(len(end) - self.block_size), found - self.block_size)
        return CloudInput(self, found, meta["e_tag"], last), content

    def _end(self, size: int | None, wanted: int) -> tuple[Any, Any]:
        """Return the metadata and the last bytes of the object."""
        if size is None and not self.suffix_ranges:
            size = self.head()["size"]
        if size == 0:
            return self.head(), b""
        place = {"suffix": wanted} if size is None else (max(size - wanted, 0), size)
        try:
            return self.get({"range": place})
        except CLIENT_ERRORS as error:
            if status_of(error) != _RANGE_NOT_SATISFIABLE:
                raise
        # the object is empty, or shorter than expected
        return self.head(), b""


class CloudInput:
    """Object of a cloud store, opened for ranged reads.

    Parameters
    ----------
    source
        The object.
    size
        Its size in bytes.
    e_tag
        Tag that differs from that of a later object with the same name, if the store has such tags.
    end
        Its last bytes.
    """

    def __init__(self, source: CloudObject, size: int, e_tag: str | None, end: pa.Buffer) -> None:
        self._source = source
        self._size = size
        self._e_tag = e_tag
        self._end: pa.Buffer | None = end
        self._end_start = size - end.size
        self._blocks = KnownBlocks()
        self._held = HeldParts()

    @property
    def path(self) -> str:
        """URI of the object."""
        return self._source.uri

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self._size

    @property
    def mapped(self) -> None:
        """None: the object is never mapped."""
        return None

    @property
    def is_remote(self) -> bool:
        """True: every read waits for another machine."""
        return True

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Return `length` bytes at `offset`."""
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        """Return one buffer per range; near ranges are fetched together, far ones in parallel."""
        return self._read_ranges(ranges, self._fetch_all)

    def _read_ranges(
        self, ranges: Sequence[tuple[int, int]], fetch: Callable[[Sequence[MergedRange]], list[pa.Buffer]]
    ) -> list[pa.Buffer]:
        end = self._end
        if end is None:
            raise InvalidInputError(f"{self.path} is closed; open it again to read")
        buffers: list[pa.Buffer] = [end] * len(ranges)
        asked = []
        for index, (offset, length) in enumerate(ranges):
            if offset < 0 or length < 0 or offset + length > self._size:
                raise CorruptFileError(
                    f"{self.path}: bytes {offset} to {offset + length} lie outside the {self._size} bytes it has"
                )
            if offset >= self._end_start:
                buffers[index] = end.slice(offset - self._end_start, length)
            elif length == 0:
                buffers[index] = end.slice(0, 0)
            elif (held := self._held.find(offset, length)) is not None:
                buffers[index] = held
            else:
                asked.append(index)
        if not asked:
            return buffers
        far = [ranges[index] for index in asked]
        requests = merge_ranges(far, self._source.block_size, _PIECE)
        self._source.counter.joined_reads += len(far) - len(requests)
        for index, buffer in zip(asked, split_merged(far, requests, fetch(requests)), strict=True):
            buffers[index] = buffer
        return buffers

    def _fetch_all(self, requests: Sequence[MergedRange]) -> list[pa.Buffer]:
        targets = [_allocate(request.offset, request.length) for request in requests]
        pieces = [
            (request.offset + start, memory[start : start + _PIECE])
            for request, (_, memory) in zip(requests, targets, strict=True)
            for start in range(0, request.length, _PIECE)
        ]
        if len(pieces) == 1:
            self._fetch(pieces[0])
        elif pieces:
            for _ in request_pool().map(self._fetch, pieces):
                pass
        return [buffer for buffer, _ in targets]

    def _read_unaligned(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        """Do the same as `read_ranges` for a caller who copies the bytes, wherever in memory they are."""
        return self._read_ranges(ranges, self._receive_all)

    def _receive_all(self, requests: Sequence[MergedRange]) -> list[pa.Buffer]:
        if any(request.length > _PIECE for request in requests):
            return self._fetch_all(requests)
        places = [(request.offset, request.length) for request in requests]
        received = request_pool().map(self._receive, places) if len(places) > 1 else map(self._receive, places)
        return [pa.py_buffer(content) for content in received]

    def _fetch(self, piece: tuple[int, memoryview]) -> None:
        """Fill a piece of memory with the bytes at an offset."""
        offset, memory = piece
        _copy(memory, self._receive((offset, len(memory))))

    def _receive(self, place: tuple[int, int]) -> Any:
        """Return as many bytes at an offset, as the client has received them."""
        offset, length = place
        try:
            meta, content = self._source.get({"range": (offset, offset + length)})
        except CLIENT_ERRORS as error:
            if status_of(error) == _RANGE_NOT_SATISFIABLE:
                raise self._changed() from scrubbed(error)
            raise translated(error, self.path, "reading") from error
        if meta["size"] != self._size or meta["e_tag"] != self._e_tag:
            raise self._changed()
        if len(content) != length:
            raise StorageError(
                f"reading {self.path} failed: the store sent {len(content)} bytes instead of {length}; try again"
            )
        return content

    def _changed(self) -> CorruptFileError:
        return CorruptFileError(
            f"{self.path}: another object was put in its place after it was opened; open the dataset again"
        )

    def scatter(self, scattered: bool) -> None:
        """Do nothing: only what is requested is fetched."""

    def will_need(self, ranges: Sequence[tuple[int, int]]) -> bool:
        """Do nothing: ranges are requested when they are read."""
        return False

    def hold(self, ranges: Sequence[tuple[int, int]]) -> Callable[[], None]:
        """See `InputFile.hold`."""
        far = [(offset, length) for offset, length in ranges if offset < self._end_start]
        missing = self._held.missing(far, self._source.block_size, _PIECE)
        buffers = self.read_ranges(missing)
        return self._held.hold([(place[0], buffer) for place, buffer in zip(missing, buffers, strict=True)])

    def holds(self, offset: int, length: int) -> bool:
        """See `InputFile.holds`."""
        return self._held.has(offset, length)

    def blocks(self) -> FileBlocks | None:
        """See `InputFile.blocks`."""
        return self._blocks.get(self, fetch=self._read_unaligned)

    def discard(self, offset: int, length: int) -> None:
        """Do nothing: only the last bytes are held."""

    def close(self) -> None:
        """Release the last bytes; buffers already returned stay valid."""
        self._end = None


def _allocate(offset: int, length: int) -> tuple[pa.Buffer, memoryview]:
    """Allocate memory for bytes at an offset of a file, aligned as in the file: a buffer, and a view to fill it."""
    # not from the pool of Arrow: it takes megabytes for each of many threads, and has the system clear them
    memory = np.empty(length + _ALIGNMENT, np.uint8)
    lead = (offset - memory.ctypes.data) % _ALIGNMENT
    part = memory[lead : lead + length]
    return pa.py_buffer(part), part.data


def _aligned(content: Any, offset: int) -> pa.Buffer:
    buffer, memory = _allocate(offset, len(content))
    _copy(memory, content)
    return buffer


def _copy(memory: memoryview, content: Any) -> None:
    """Fill memory. While numpy copies, other threads may use the interpreter."""
    if len(memory):
        np.frombuffer(memory, np.uint8)[:] = np.frombuffer(content, np.uint8)
