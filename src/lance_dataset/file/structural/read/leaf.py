"""Leaf columns of 2.1 and later files: pages of any layout, read as branches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import ceil

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import bitmap_at_zero, concat_arrays, filled_bitmap
from lance_dataset.file.column import ColumnReader, DictionaryOverflowError, OversizeError, Part
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.kinds import is_binary_like, is_empty_struct
from lance_dataset.file.stored_bounds import StoredBounds
from lance_dataset.file.stored_test import StoredTest
from lance_dataset.file.structural.layout import (
    FullZipLayout,
    Layer,
    max_definition,
)
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.file.structural.read.decompression import WideSpanError
from lance_dataset.file.structural.read.levels import assemble, check_layers
from lance_dataset.file.structural.read.page import LeafPage, NestedPage, Page
from lance_dataset.file.structural.read.plain_pages import plain_array, plain_dictionary_bytes, plain_taker
from lance_dataset.file.take_shape import take_shape
from lance_dataset.file.zones import Zones
from lance_dataset.properties import cached_property
from lancecodec import CodecError, OffsetOverflowError
from lancecodec.intervals import ALL_PASS, SOME_PASS
from lancecodec.take import ColumnTaker
from lancecodec.take_pages import PageTaker

__all__ = ["LeafColumn", "LevelPage"]

#: Cost in nanoseconds below which rows are not worth a task of their own, and above which a page is cut.
_PART_COST = 5e5
_MAX_PART_COST = 4e6
#: Nanoseconds for reading a byte of a file that is in memory, but not mapped.
_READ_COST = 0.2
#: Number of rows of a page from which on it is opened to estimate costs.
_TELLING_ROWS = 1 << 14
#: Bytes of a buffer from which on parts of it are announced, and released.
_LARGE_BUFFER = 1 << 16
#: Number of rows of a take that are checked to find out whether the others are in memory.
_SAMPLED_ROWS = 6


class LeafColumn(ColumnReader):
    """One column of a file, read as nested arrays with this leaf alone.

    Parameters
    ----------
    pages
        Non-empty pages in row order.
    branch
        The leaf and the fields above it.
    where
        File and column, for error messages.
    open_page
        See `PageGrammar`.
    file, index
        File and position of the column in it, for the bounds of its values. None if these do not matter.
    """

    def __init__(
        self,
        pages: list[Page],
        branch: Branch,
        where: str,
        open_page: Callable[[Page, Branch], NestedPage],
        file: FileMetadata | None = None,
        index: int = 0,
    ) -> None:
        self.branch = branch
        self.arrow_type = branch.arrow_type
        self.num_rows = pages[-1].start + pages[-1].length if pages else 0
        self._pages = pages
        # a tuple: the garbage collector does not track tuples of integers, and there are thousands of columns
        self._starts = tuple([page.start for page in pages])
        self.where = where
        self._file = file
        self._index = index
        self._open_page = open_page
        self._opened: dict[int, NestedPage] = {}
        # not `lazy`, which needs an attribute dictionary, as there are thousands of columns
        self._taker: ColumnTaker | None = None
        self._has_taker = True

    @cached_property
    def page_starts(self) -> NDArray[np.int64]:
        """First row of each page, then the number of rows."""
        return np.array([*self._starts, self.num_rows], np.int64)

    def _open(self, number: int) -> NestedPage:
        return _opened(self._pages, self._opened, self._open_page, self.branch, number)

    # -- ranges --------------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        return self._join(self.read_chunks(start, stop))

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Return an array per page, or several if a page does not fit 32-bit offsets."""
        return self._read_pages(start, stop, encoded=False)

    def read_encoded(self, start: int, stop: int) -> list[pa.Array]:
        """See `ColumnReader.read_encoded`; nested values are not left encoded."""
        return self._read_pages(start, stop, encoded=not self.branch.above)

    def _read_pages(self, start: int, stop: int, *, encoded: bool) -> list[pa.Array]:
        pieces: list[pa.Array] = []
        number = max(bisect_right(self._starts, start) - 1, 0)
        while start < stop:
            page = self._pages[number]
            end = min(stop, page.start + page.length)
            pieces.extend(self._read_page(number, start - page.start, end - page.start, encoded=encoded))
            start, number = end, number + 1
        return pieces

    def can_search(self, test: StoredTest) -> bool:
        """See `ColumnReader.can_search`."""
        first = self._open(0) if self._pages else None
        return isinstance(first, LevelPage) and first.can_search(test)

    def search(
        self, test: StoredTest, start: int, stop: int, kept: pa.BooleanArray | None = None
    ) -> list[pa.BooleanArray] | None:
        """See `ColumnReader.search`; zones whose bounds decide the test are not looked at."""
        results: list[pa.BooleanArray] = []
        for first, end, verdict in self._runs(test, start, stop):
            wanted = None if kept is None else kept.slice(first - start, end - first)
            if verdict == ALL_PASS and wanted is not None:
                found: list[pa.BooleanArray] | None = [wanted]
            elif verdict != SOME_PASS:
                bits = filled_bitmap(verdict == ALL_PASS, end - first)
                found = [pa.Array.from_buffers(pa.bool_(), end - first, [None, bits], 0)]
            else:
                found = self._search_pages(test, first, end, wanted)
            if found is None:
                return None
            results.extend(found)
        return results

    def _runs(self, test: StoredTest, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Cut a range of rows where the verdict of bounds on a test changes; return each part with its verdict."""
        known = self.verdicts(test) if test.uses_bounds else None
        if known is None:
            return [(start, stop, SOME_PASS)]
        rows, verdicts = known
        first = start // rows
        inside = verdicts[first : (stop - 1) // rows + 1]
        begins = [0, *(np.flatnonzero(inside[1:] != inside[:-1]) + 1).tolist()]
        cuts = [start, *((first + begin) * rows for begin in begins[1:]), stop]
        return [(low, high, int(inside[begin])) for low, high, begin in zip(cuts, cuts[1:], begins, strict=False)]

    def _search_pages(
        self, test: StoredTest, start: int, stop: int, kept: pa.BooleanArray | None
    ) -> list[pa.BooleanArray] | None:
        """Search rows page by page; None unless `LeafPage.can_search` of each page."""
        found: list[tuple[LevelPage, int, int]] = []
        number, at = max(bisect_right(self._starts, start) - 1, 0), start
        while at < stop:
            page, opened = self._pages[number], self._open(number)
            if not isinstance(opened, LevelPage) or not opened.can_search(test):
                return None
            end = min(stop, page.start + page.length)
            found.append((opened, at - page.start, end - page.start))
            at, number = end, number + 1
        results: list[pa.BooleanArray] = []
        base = 0
        for opened, first, end in found:
            wanted = None if kept is None else kept.slice(base, end - first)
            result = self._search_page(opened, test, first, end, wanted)
            if result is None:
                return None
            results.append(result)
            base += end - first
        return results

    def _search_page(
        self, page: LevelPage, test: StoredTest, first: int, end: int, kept: pa.BooleanArray | None
    ) -> pa.BooleanArray | None:
        try:
            return page.search(test, first, end, kept)
        except (CodecError, CorruptFileError) as error:
            raise _placed(CorruptFileError(str(error)), page.where) from error

    def parts(self, start: int, stop: int) -> list[Part]:
        """Return groups of whole pages that are each worth a task, or pieces of a page that is worth several."""
        parts: list[Part] = []
        number, first, cost = max(bisect_right(self._starts, start) - 1, 0), start, 0.0
        while start < stop:
            page = self._pages[number]
            end = min(stop, page.start + page.length)
            cost += self._cost(page) * (end - start) / page.length
            if cost >= _PART_COST or end == stop:
                parts.extend(_even_parts(first, end, cost))
                first, cost = end, 0.0
            start, number = end, number + 1
        return parts

    def _cost(self, page: Page) -> float:
        """Return the approximate cost of decoding a page in nanoseconds."""
        layout = page.layout
        if (
            page.is_mapped
            and isinstance(layout, FullZipLayout)
            and layout.bits
            and not layout.rep_bits + layout.def_bits
        ):
            return 0.0  # the values are used in place
        rows = page.length * self.branch.rows_per_value
        copied = 0.0 if page.is_mapped or page.source.is_remote else _READ_COST * sum(size for _, size in page.buffers)
        if self.branch.above or is_binary_like(self.branch.leaf.storage_type):
            return 3.0 * rows + sum(size for _, size in page.buffers)
        return max(float(rows), copied)

    def _read_page(self, number: int, first: int, end: int, *, encoded: bool = False) -> list[pa.Array]:
        plain = self._plain_page(number, encoded=encoded) if end - first == self._pages[number].length else None
        if plain is not None:
            return [plain]
        where = self._pages[number].where
        try:
            page = self._open(number)
            if encoded and isinstance(page, LevelPage):
                return [page.read_encoded(first, end)]
            return [page.read(first, end)]
        except OffsetOverflowError as error:
            if end - first == 1:
                raise CorruptFileError(f"{where}: one value has more than 2**31 - 1 bytes or items") from error
        except WideSpanError:
            pass  # as long as it is handled, it keeps what was decompressed
        except CodecError as error:
            raise CorruptFileError(f"{where}: {error}") from error
        except CorruptFileError as error:
            raise _placed(error, where) from error
        middle = (first + end) // 2
        halves = (first, middle), (middle, end)
        return [piece for half in halves for piece in self._read_page(number, *half, encoded=encoded)]

    def _plain_page(self, number: int, *, encoded: bool) -> pa.Array | None:
        """Return a whole page that is small and plain, None for others and for a broken one, which `_open` reports."""
        page = self._pages[number]
        if number in self._opened or not _may_be_plain(page):
            return None
        if encoded and getattr(page.layout, "dictionary", None) is not None:
            return None
        try:
            return plain_array(page, self.branch)
        except (CodecError, CorruptFileError, UnsupportedError):
            return None

    def begin(self, start: int, stop: int) -> None:
        """See `ColumnReader.begin`; the bytes of rows are guessed as if all had the same size."""
        for page, buffer, low, high in self._spans(start, stop):
            page.will_need(buffer, [(low, high)])

    def end(self, start: int, stop: int) -> None:
        """See `ColumnReader.end`; the bytes of rows are guessed as for `begin`."""
        for page, buffer, low, high in self._spans(start, stop):
            page.discard_range(buffer, low, high)

    def _spans(self, start: int, stop: int) -> Iterator[tuple[Page, int, int, int]]:
        """Yield about the bytes of a range of rows: page, number of a buffer that is large, and range of its bytes."""
        number = max(bisect_right(self._starts, start) - 1, 0)
        while start < stop:
            page = self._pages[number]
            end = min(stop, page.start + page.length)
            first, last = start - page.start, end - page.start
            for buffer, (_, size) in enumerate(page.buffers):
                if size >= _LARGE_BUFFER:
                    yield page, buffer, size * first // page.length, size * last // page.length
            start, number = end, number + 1

    def dictionary_bytes(self) -> tuple[float, float] | None:
        """See `ColumnReader.dictionary_bytes`."""
        if not self._pages or self.branch.above or self._pages[0].length < _TELLING_ROWS:
            return None
        if getattr(self._pages[0].layout, "dictionary", None) is None:
            return None
        if 0 not in self._opened and _may_be_plain(self._pages[0]):
            plain = plain_dictionary_bytes(self._pages[0], self.branch)
            if plain is not None:
                return plain
        try:
            page = self._open(0)
            return page.dictionary_bytes() if isinstance(page, LevelPage) else None
        except CodecError as error:
            raise CorruptFileError(f"{self._pages[0].where}: {error}") from error

    def _join(self, pieces: list[pa.Array]) -> pa.Array:
        try:
            return concat_arrays(pieces, self.branch.arrow_type)
        except pa.ArrowInvalid as error:
            if not pa.types.is_dictionary(self.branch.leaf.storage_type):
                if "overflow" in str(error):
                    raise OversizeError(f"{self.where}: {error}") from error
                raise
            raise DictionaryOverflowError(
                f"{self.where}: the rows have more distinct values than the index type of "
                f"{self.branch.leaf.storage_type} tells apart; read fewer rows at once"
            ) from error

    @cached_property
    def _bounds(self) -> StoredBounds | None:
        if self._file is None or self.branch.above:
            return None
        bounds = self._file.bounds(self._index)
        return None if bounds is None or bounds.num_rows != self.num_rows else bounds

    @cached_property
    def _zones(self) -> Zones | None:
        return None if self._bounds is None else self._bounds.zones(self.arrow_type)

    def verdicts(self, test: StoredTest) -> tuple[int, NDArray[np.uint8]] | None:
        """See `ColumnReader.verdicts`."""
        bounds = self._bounds
        found = None if bounds is None else bounds.verdicts(test)
        return None if bounds is None or found is None else (bounds.zone_rows, found)

    def zones(self, path: Sequence[str] = ()) -> Zones | None:
        """See `ColumnReader.zones`; some writers store bounds of the values."""
        return None if path else self._zones

    # -- random access -------------------------------------------------------------------------------------------

    def will_need(self, rows: NDArray[np.int64]) -> None:
        """See `ColumnReader.will_need`."""
        if len(rows) and self._pages[0].is_mapped and self._announce(rows[:: -(-len(rows) // _SAMPLED_ROWS)]):
            self._announce(rows)

    def _announce(self, rows: NDArray[np.int64]) -> bool:
        """Request the loading of ascending rows; return whether any were not in memory."""
        missing = False
        numbers = np.searchsorted(self.page_starts, rows, side="right") - 1
        for number in np.unique(numbers).tolist():
            opened = self._open(number)
            if isinstance(opened, LevelPage):
                missing |= opened.will_need(rows[numbers == number] - self._starts[number])
        return missing

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        if len(rows) == 0:
            return self._join([])
        if len(self._pages) == 1:
            return self._take_page(0, rows)
        if len(rows) == 1:
            number = bisect_right(self._starts, rows[0]) - 1
            return self._take_page(number, rows - self._starts[number])
        numbers = np.searchsorted(self.page_starts, rows, side="right") - 1
        first = int(numbers[0])
        if (numbers == first).all():
            return self._take_page(first, rows - self._starts[first])
        if (np.diff(numbers) >= 0).all():
            return self._take_ascending(numbers, rows)
        order = np.argsort(numbers, kind="stable")
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return self._take_ascending(numbers[order], rows[order]).take(pa.array(back))

    def _take_ascending(self, numbers: NDArray[np.int64], rows: NDArray[np.int64]) -> pa.Array:
        """Return rows whose page numbers ascend."""
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(rows)]
        pieces = []
        for low, high in pairwise(cuts):
            number = int(numbers[low])
            pieces.append(self._take_page(number, rows[low:high] - self._starts[number]))
        return self._join(pieces)

    def _take_page(self, number: int, rows: NDArray[np.int64]) -> pa.Array:
        where = self._pages[number].where
        try:
            return self._open(number).take(rows)
        except WideSpanError:
            pass  # as long as it is handled, it keeps what was decompressed
        except OffsetOverflowError as error:
            raise OversizeError(f"{where}: {error}") from error
        except CodecError as error:
            raise CorruptFileError(f"{where}: {error}") from error
        except CorruptFileError as error:
            raise _placed(error, where) from error
        return self._take_halves(number, rows)

    def _take_halves(self, number: int, rows: NDArray[np.int64]) -> pa.Array:
        """Return rows of a page in two steps, each with the chunks of half of the distinct rows."""
        distinct, places = np.unique(rows, return_inverse=True)
        middle = len(distinct) // 2
        halves = [self._take_page(number, distinct[:middle]), self._take_page(number, distinct[middle:])]
        taken = self._join(halves)
        return (
            taken if len(distinct) == len(rows) and (places[1:] > places[:-1]).all() else taken.take(pa.array(places))
        )

    def taker(self) -> ColumnTaker | None:
        """See `ColumnReader.taker`."""
        if self._taker is None and self._has_taker:
            made = self._make_taker()
            self._has_taker = made is not None
            self._taker = self._taker or made  # if two threads make one, the first wins
        return self._taker

    def _make_taker(self) -> ColumnTaker | None:
        shape = take_shape(self.arrow_type)
        if shape is None or not self._pages or len(self.branch.above) != (shape.listed > 0):
            return None
        # a function that does not refer to this column, which owns the taker: files then close without a collector
        open_page = partial(_open_taker, self._pages, self._opened, self._open_page, self.branch)
        return ColumnTaker([*self._starts, self.num_rows], shape.width, open_page)


def _opened(
    pages: list[Page],
    known: dict[int, NestedPage],
    open_page: Callable[[Page, Branch], NestedPage],
    branch: Branch,
    number: int,
) -> NestedPage:
    """Return a page, opened on first use."""
    opened = known.get(number)
    if opened is None:
        opened = known.setdefault(number, open_page(pages[number], branch))
    return opened


def _open_taker(
    pages: list[Page],
    known: dict[int, NestedPage],
    open_page: Callable[[Page, Branch], NestedPage],
    branch: Branch,
    number: int,
) -> PageTaker | None:
    """Open random access to a page, None if it has none or is broken; `take` then tells what is wrong."""
    try:
        page = pages[number]
        if number not in known and page.grammar is not None and page.grammar.is_plain:
            plain = plain_taker(page, branch)
            if plain is not None:
                return plain if page.source.mapped is not None else _loaded(plain, page)
        opened = _opened(pages, known, open_page, branch, number)
        taker = opened.taker() if isinstance(opened, LevelPage) else None
        return None if taker is None else _loaded(taker, pages[number])
    except (CodecError, CorruptFileError, UnsupportedError):
        return None


def _loaded(taker: PageTaker, page: Page) -> PageTaker:
    """Return the taker, which loads what it needs unless the page is mapped."""
    blocks = page.blocks
    if blocks is not None:
        taker.load_from(blocks)
    return taker


def _even_parts(start: int, stop: int, cost: float) -> list[Part]:
    count = min(ceil(cost / _MAX_PART_COST), stop - start) if cost else 1
    if count == 1:
        return [Part(start, stop, cost)]
    cuts = [start + (stop - start) * number // count for number in range(count + 1)]
    return [Part(low, high, cost / count) for low, high in pairwise(cuts)]


def _placed(error: CorruptFileError, where: str) -> CorruptFileError:
    """Return the error with its place, if the message does not have it yet."""
    return error if where in str(error) else CorruptFileError(f"{where}: {error}")


class LevelPage:
    """A page with its structure in levels, read as nested arrays; see `NestedPage`.

    Parameters
    ----------
    page
        Page with the values and levels.
    branch
        The leaf and the fields above it.
    """

    def __init__(self, page: LeafPage, branch: Branch) -> None:
        layers = page.layers
        if is_empty_struct(branch.leaf.storage_type) and layers == (Layer.NULLABLE_ITEM,):
            # One layer stands for all layers, none of which has nulls.
            layers = (Layer.ALL_VALID_ITEM,) * (1 + len(branch.above))
        check_layers(layers, branch, page.page.where)
        self._page = page
        self._layers = layers
        self._branch = branch

    def read(self, start: int, stop: int) -> pa.Array:
        """See `NestedPage.read`."""
        return assemble(self._page.read(start, stop), self._layers, self._branch)

    def read_encoded(self, start: int, stop: int) -> pa.Array:
        """Return rows as a dictionary array if the page stores the values of a leaf once, otherwise like `read`."""
        return assemble(self._page.read_encoded(start, stop), self._layers, self._branch)

    @property
    def where(self) -> str:
        """File, column and page, for error messages."""
        return self._page.page.where

    def dictionary_bytes(self) -> tuple[float, float] | None:
        """See `ColumnReader.dictionary_bytes`; raises as `read`."""
        return self._page.dictionary_bytes()

    def can_search(self, test: StoredTest) -> bool:
        """Return True if `search` works: values are not nested, and nulls are allowed if there can be any."""
        leaf = self._branch.leaf
        if self._branch.above or not (leaf.nullable or not max_definition(self._layers)):
            return False
        return self._page.can_search(test)

    def search(self, test: StoredTest, start: int, stop: int, kept: pa.BooleanArray | None) -> pa.BooleanArray | None:
        """Return which of the rows ``[start, stop)`` pass a test; see `ColumnReader.search`."""
        length = stop - start
        mask = None if kept is None else bitmap_at_zero(kept.buffers()[1], kept.offset, length)
        found = self._page.search(test, start, stop, mask)
        return None if found is None else pa.Array.from_buffers(pa.bool_(), length, [None, found], 0)

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `NestedPage.take`."""
        return assemble(self._page.take(rows), self._layers, self._branch)

    def will_need(self, rows: NDArray[np.int64]) -> bool:
        """See `LeafPage.will_need`."""
        return self._page.will_need(rows)

    def taker(self) -> PageTaker | None:
        """Open random access to rows without making objects, None if only `take` supports it. Raises as `take`."""
        above = self._branch.above
        if not above:
            return self._page.taker(not self._branch.leaf.nullable)
        if len(above) > 1 or above[0].kind != "list":
            return None
        return self._page.taker(not self._branch.leaf.nullable, lists=not above[0].field.nullable)


def _may_be_plain(page: Page) -> bool:
    """Return whether `plain_pages` may be able to read the page, as far as its descriptor tells."""
    return page.grammar is not None and page.grammar.is_plain
