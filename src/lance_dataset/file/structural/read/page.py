"""A page of a 2.1 (or later) column: the places of its buffers, its layout, and the interface of all layouts."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, MemoryLimitError, UnsupportedError
from lance_dataset.file.cache import PageCache
from lance_dataset.file.container import ColumnMetadata
from lance_dataset.file.page_encodings import EncodingParser, PageMemory, needs_little
from lance_dataset.file.stored_test import StoredTest
from lance_dataset.file.structural.layout import Layer
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.file.structural.read.levels import LeafValues
from lance_dataset.io.base import InputFile
from lancecodec import gather
from lancecodec.blocks import FileBlocks, Held
from lancecodec.take_pages import PageTaker

__all__ = [
    "LeafPage",
    "NestedPage",
    "Page",
    "PageGrammar",
    "expand_ranges",
    "expand_rows",
    "open_pages",
    "with_older_pages",
]

#: Maximum rows of a column: far more than writers store, and small enough that sums and products fit 64 bits.
_MAX_ROWS = 2**40
_DISCARD_BYTES = 1 << 20
#: Buffers of a page up to this size are fetched together if reads are requests, and are kept for a while.
_SMALL = 64 << 10
_fetched = PageCache(16 << 20)
_MEMORY_PAGE = 4096
_GUESS = 8 << 10


@dataclass(slots=True, eq=False)
class Page:
    """One page, bound to its file.

    Attributes
    ----------
    source
        The file.
    place
        File and column; with the page if `number` is None.
    start
        Rows of the column before this page.
    length
        Number of rows.
    layout
        Layout of the page, parsed by the grammar of the file version.
    buffers
        (position, size) of the buffers.
    grammar
        The grammar of the page.
    number
        Number of the page in its column.
    kept
        The `cache` that the pages of one column share.
    """

    source: InputFile
    place: str
    start: int
    length: int
    layout: Any
    buffers: Sequence[tuple[int, int]]
    grammar: PageGrammar | None = field(default=None, repr=False)
    number: int | None = None
    kept: PageCache | None = field(default=None, repr=False)

    @property
    def cache(self) -> PageCache:
        """Decoded parts of the page; created on first use, as few pages need it."""
        if self.kept is None:
            self.kept = PageCache()
        return self.kept

    @property
    def where(self) -> str:
        """File, column and page, for error messages."""
        return self.place if self.number is None else f"{self.place}, page {self.number}"

    def require_buffers(self, count: int) -> None:
        """Raise CorruptFileError unless the page has `count` buffers."""
        if len(self.buffers) != count:
            raise CorruptFileError(f"{self.where}: has {len(self.buffers)} buffers, its layout needs {count}")

    def size_of(self, buffer: int) -> int:
        """Return the size of a buffer in bytes."""
        return self.buffers[buffer][1]

    def read(self, buffer: int) -> pa.Buffer:
        """Return a whole buffer that is going to be read completely."""
        if self.source.mapped is None:
            return self.read_parts(buffer, [(0, self.buffers[buffer][1])])[0]
        position, size = self.buffers[buffer]
        if size > _MEMORY_PAGE:
            self.source.will_need([(position, size)])
        return self.source.read(position, size)

    def view(self, buffer: int) -> pa.Buffer:
        """Return a whole buffer of which only some places are going to be read, without reading it.

        If the file is not mapped, `hold` must load the places before they are looked at.
        """
        position, size = self.buffers[buffer]
        blocks = self.blocks
        if blocks is None:
            return self.source.read(position, size)
        if position < 0 or size < 0 or position + size > self.source.size:
            raise CorruptFileError(f"{self.where}: bytes {position} to {position + size} lie outside the file")
        return pa.py_buffer(blocks).slice(position, size)

    @property
    def blocks(self) -> FileBlocks | None:
        """See `InputFile.blocks`."""
        return self.source.blocks()

    @property
    def is_viewable(self) -> bool:
        """True if `view` costs neither a request nor a copy."""
        return self.source.mapped is not None or self.source.blocks() is not None

    def hold(self, buffer: int, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> Held | None:
        """Load ranges of bytes for `view` as long as the result lives; None if the file is mapped or has no blocks.

        The ranges must lie inside the buffer.
        """
        blocks = self.source.blocks()
        if blocks is None:
            return None
        position = self.buffers[buffer][0]
        return blocks.hold(begins + position, ends + position)

    def read_range(self, buffer: int, start: int, stop: int) -> pa.Buffer:
        """Return bytes ``[start, stop)`` of a buffer; the range must lie inside it."""
        position, size = self.buffers[buffer]
        if size <= _SMALL or not 0 <= start <= stop <= size:
            return self.read_parts(buffer, [(start, stop)])[0]
        if stop - start > _MEMORY_PAGE and self.source.mapped is not None:
            self.source.will_need([(position + start, stop - start)])
        return self.source.read(position + start, stop - start)

    def will_need(self, buffer: int, parts: Sequence[tuple[int, int]]) -> bool:
        """Announce that bytes ``[start, stop)`` of a buffer are going to be read; see `InputFile.will_need`."""
        position = self.buffers[buffer][0]
        return self.source.will_need([(position + start, stop - start) for start, stop in parts])

    def read_parts(self, buffer: int, parts: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        """Return bytes ``[start, stop)`` of a buffer for each part; the ranges must lie inside it."""
        position, size = self.buffers[buffer]
        for start, stop in parts:
            if not 0 <= start <= stop <= size:
                raise CorruptFileError(f"{self.where}: bytes {start} to {stop} of buffer {buffer} of {size} bytes")
        if self.source.mapped is None and size <= _SMALL:
            whole = self._small_buffers()[buffer]
            return [whole.slice(start, stop - start) for start, stop in parts]
        return self.source.read_ranges([(position + start, stop - start) for start, stop in parts])

    def _small_buffers(self) -> dict[int, pa.Buffer]:
        """Return all small buffers. If one is needed most are, and each would be a request."""

        def fetch() -> dict[int, pa.Buffer]:
            numbers = [number for number, (_, size) in enumerate(self.buffers) if size <= _SMALL]
            found = self.source.read_ranges([self.buffers[number] for number in numbers])
            return dict(zip(numbers, found, strict=True))

        if all(self.source.holds(*place) for place in self.buffers if place[1] <= _SMALL):
            return fetch()  # the cache would keep all that was fetched with them
        key = self.cache.key, tuple(self.buffers)
        return _fetched.get(key, fetch, lambda found: sum(data.size for data in found.values()))

    def discard_range(self, buffer: int, start: int, stop: int) -> None:
        """Release the memory of bytes that were decoded into a copy, if they are large enough to matter."""
        if stop - start >= _DISCARD_BYTES:
            self.source.discard(self.buffers[buffer][0] + start, stop - start)

    @property
    def is_mapped(self) -> bool:
        """True if reading costs neither a request nor a copy."""
        return self.source.mapped is not None


class LeafPage(abc.ABC):
    """Reader of the rows of a page as values of the leaf and their levels.

    Attributes
    ----------
    page
        The page.
    layers
        Layers of the page, inner-most first.
    """

    page: Page
    layers: tuple[Layer, ...]

    @abc.abstractmethod
    def read(self, start: int, stop: int) -> LeafValues:
        """Return rows ``[start, stop)`` of the page.

        Raises
        ------
        CodecError, CorruptFileError
            The content contradicts the layout (a CodecError does not name the place).
        """

    def read_encoded(self, start: int, stop: int) -> LeafValues:
        """Return rows like `read`, but as a dictionary array if the page stores each distinct value once."""
        return self.read(start, stop)

    def dictionary_bytes(self) -> tuple[float, float] | None:
        """See `ColumnReader.dictionary_bytes`; raises as `read`."""
        return None

    def can_search(self, test: StoredTest) -> bool:
        """Return True if `search` works for a test of values that are not nested."""
        return False

    def search(self, test: StoredTest, start: int, stop: int, kept: pa.Buffer | None) -> pa.Buffer | None:
        """Return a bitmap of the rows ``[start, stop)`` that pass a test, None if `read` is better; raises as `read`.

        Parameters
        ----------
        kept
            Bitmap of the rows that matter, None for all.
        """
        raise NotImplementedError

    def will_need(self, rows: NDArray[np.int64]) -> bool:
        """Announce that some rows (in range, ascending) are going to be taken; see `InputFile.will_need`.

        By default these are the bytes around the places that the rows have if all rows have the same size.
        """
        missing = False
        for buffer, (_, size) in enumerate(self.page.buffers):
            if size > _SMALL:
                at = np.unique(rows * size // self.page.length // _GUESS).tolist()
                parts = [(place * _GUESS, min((place + 2) * _GUESS, size)) for place in at]
                missing |= self.page.will_need(buffer, parts)
        return missing

    @abc.abstractmethod
    def take(self, rows: NDArray[np.int64]) -> LeafValues:
        """Return the rows at `rows` (in range, any order, repeats allowed), in that order."""

    def taker(self, required: bool, lists: bool | None = None) -> PageTaker | None:
        """Open random access to rows without making objects, None if only `take` supports it. Raises as `read`.

        Parameters
        ----------
        required
            True if the field is declared to have no nulls.
        lists
            True if the lists around it are declared to have no nulls; None without lists.
        """
        return None


class NestedPage(Protocol):
    """Reader of the rows of a page as nested arrays of their branch.

    Both methods raise CodecError or CorruptFileError, perhaps without the place, if the content contradicts the
    layout.
    """

    def read(self, start: int, stop: int) -> pa.Array:
        """Return rows ``[start, stop)`` of the page."""

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return the rows at `rows` (in range, any order, repeats allowed), in that order."""


@dataclass(frozen=True)
class PageGrammar:
    """Descriptions and readers of the pages of some file versions.

    Attributes
    ----------
    versions
        The file versions, for error messages.
    type_name
        Protobuf name of the descriptor.
    parse
        Parses a serialized descriptor; raises CorruptFileError or UnsupportedError without the place.
    open_page
        Opens a page, read as a branch.
    is_plain
        True if mini-block pages are exactly as their layout says, so that `plain_pages` can read small ones.
    older
        Grammars of pages in files of these versions that were written before the version was stable.
    """

    versions: str
    type_name: str
    parse: EncodingParser[Any]
    open_page: Callable[[Page, Branch], NestedPage]
    is_plain: bool = False
    older: tuple[PageGrammar, ...] = ()

    def of(self, type_name: str) -> PageGrammar | None:
        """Return the grammar of a descriptor, which may be an older one; None if it is unknown."""
        if type_name == self.type_name:
            return self
        return next((grammar for grammar in self.older if grammar.type_name == type_name), None)


def with_older_pages(grammar: PageGrammar, *older: PageGrammar) -> PageGrammar:
    """Return a grammar for files in which each page may also be described by one of the `older` grammars."""

    def open_page(page: Page, branch: Branch) -> NestedPage:
        own = next((other for other in older if other is page.grammar), grammar)
        return own.open_page(page, branch)

    return replace(grammar, open_page=open_page, older=older)


def expand_rows(rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the positions of `count` values for each row."""
    if count == 1:
        return rows
    return (rows[:, None] * count + np.arange(count)).reshape(-1)


def expand_ranges(begins: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``begins[i], begins[i] + 1, ...``, with `counts[i]` numbers, for each i."""
    offsets = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.int64)
    gather.expand_ranges(begins, offsets.data, True, out)
    return out


def open_pages(
    source: InputFile, metadata: ColumnMetadata, place: str, rows_per_value: int, grammar: PageGrammar
) -> list[Page]:
    """Bind the pages of a column to their file, without pages that have no rows.

    Parameters
    ----------
    place
        File and column, for error messages.
    rows_per_value
        Divisor of page lengths: the product of the dimensions of fixed-size lists above the leaf.

    Raises
    ------
    CorruptFileError, UnsupportedError
        A page is broken or cannot be read. The message has the file, column and page.
    """
    if rows_per_value < 1:
        raise CorruptFileError(f"{place}: fixed-size lists of 0 structs")
    stored = metadata.pages
    memory = None if needs_little([page.encoding for page in stored]) else PageMemory(place)
    cache = PageCache() if len(stored) > 1 else None  # a single page creates its own on demand
    pages: list[Page] = []
    start, known, own, layout = 0, None, None, None
    for number, (buffers, stored_length, type_name, encoding) in enumerate(stored):
        if own is None or encoding is not known or type_name != own.type_name:
            own, layout = _parsed(type_name, encoding, grammar, f"{place}, page {number}")
            known = encoding
        if memory is not None:
            _weigh(memory, encoding, layout, own, f"{place}, page {number}")
        length, rest = divmod(stored_length, rows_per_value)
        if rest or stored_length > _MAX_ROWS - start:
            raise CorruptFileError(f"{place}, page {number}: claims {stored_length} values, {rows_per_value} per row")
        if length:
            pages.append(Page(source, place, start, length, layout, buffers, own, number, cache))
            start += length
    return pages


def _parsed(type_name: str, encoding: bytes, grammar: PageGrammar, where: str) -> tuple[PageGrammar, Any]:
    """Return the grammar of a description, and the layout."""
    own = grammar.of(type_name)
    if own is None:
        raise CorruptFileError(f"{where}: layout {type_name!r} does not belong in a {grammar.versions} file")
    try:
        return own, own.parse(encoding)
    except (CorruptFileError, MemoryLimitError, UnsupportedError) as error:
        raise type(error)(f"{where}: {error}") from error


def _weigh(memory: PageMemory, encoding: bytes, layout: Any, own: PageGrammar, where: str) -> None:
    try:
        memory.add(encoding, layout, own.parse)
    except MemoryLimitError as error:
        raise MemoryLimitError(f"{where}: {error}") from error
