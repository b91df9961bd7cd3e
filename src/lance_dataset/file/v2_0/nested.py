"""Struct and list columns of 2.0 files: separate columns above the columns of their children."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate, concat_arrays
from lance_dataset.file.column import ColumnReader, OversizeError
from lance_dataset.file.kinds import is_wide
from lance_dataset.file.v2_0.leaf import page_ranges
from lance_dataset.file.v2_0.nodes import Fixed, List, Nullable
from lance_dataset.file.v2_0.page import Page
from lance_dataset.file.v2_0.values import discard_values, read_values
from lance_dataset.properties import cached_property
from lancecodec import CodecError, OffsetOverflowError, gather
from lancecodec import offsets as offset_codec
from lancecodec.pages import EndsPages

if TYPE_CHECKING:
    from lancecodec.pages import EndsTable

__all__ = ["ListColumn", "StructColumn", "list_node"]


class StructColumn(ColumnReader):
    """Struct column; structs are never null in 2.0, so it consists only of its children.

    Parameters
    ----------
    num_rows
        Number of values; every child must have the same.
    """

    def __init__(self, arrow_type: pa.StructType, num_rows: int, children: list[ColumnReader], where: str) -> None:
        self.arrow_type = arrow_type
        self.num_rows = num_rows
        self._children = children
        for child, field in zip(children, arrow_type, strict=True):
            if child.num_rows != num_rows:
                raise CorruptFileError(
                    f"{where}: field {field.name!r} has {child.num_rows} values, but its struct has {num_rows}"
                )

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        return self._assemble([child.read(start, stop) for child in self._children], stop - start)

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Return chunks that are cut wherever any child is cut."""
        if stop == start:
            return []
        chunks = [child.read_chunks(start, stop) for child in self._children]
        cuts = sorted({int(cut) for pieces in chunks for cut in np.cumsum([len(piece) for piece in pieces])})
        columns = [_recut(pieces, cuts) for pieces in chunks]
        lengths = np.diff([0, *cuts]) if cuts else [stop - start]
        return [self._assemble([column[k] for column in columns], int(length)) for k, length in enumerate(lengths)]

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        return self._assemble([child.take(rows) for child in self._children], len(rows))

    def _assemble(self, children: list[pa.Array], length: int) -> pa.Array:
        return pa.Array.from_buffers(self.arrow_type, length, [None], children=children)


def _recut(pieces: list[pa.Array], cuts: list[int]) -> list[pa.Array]:
    """Return the same values cut at `cuts`, which include the existing cuts, without copies."""
    result, start, number, base = [], 0, 0, 0
    for cut in cuts:
        while start - base >= len(pieces[number]):
            base += len(pieces[number])
            number += 1
        result.append(pieces[number].slice(start - base, cut - start))
        start = cut
    return result


def list_node(page: Page) -> List:
    """Return the list encoding of a page of a list column.

    Raises
    ------
    CorruptFileError
        The page encodes something else.
    """
    node = page.node
    while isinstance(node, Nullable) and node.validity is None and node.values is not None:
        node = node.values
    if not isinstance(node, List):
        raise CorruptFileError(f"{page.where}: encoding {type(node).__name__} does not fit a list column")
    return node


def list_ends(page: Page, node: List) -> Fixed:
    """Return the ends of a page that has lists."""
    if node.ends is None:
        raise CorruptFileError(f"{page.where}: its lists have no ends")
    return node.ends


def _check_last(page: Page, node: List, last: int) -> None:
    if last != node.num_items:
        raise CorruptFileError(f"{page.where}: the last list ends at item {last} of {node.num_items}")


class ListColumn(ColumnReader):
    """List column: pages of ends, above the column of its items.

    Parameters
    ----------
    pages
        Non-empty pages in row order.
    items
        The item column.
    """

    def __init__(
        self, pages: list[Page], arrow_type: pa.DataType, items: ColumnReader, nullable: bool, where: str
    ) -> None:
        self.arrow_type = arrow_type
        self.num_rows = pages[-1].start + pages[-1].length if pages else 0
        self._pages = pages
        self._starts = [page.start for page in pages]
        self._items = items
        self._nullable = nullable
        self._where = where
        self._wide = is_wide(arrow_type)
        self._bases: dict[int, int] = {}
        base = 0
        for page in pages:
            self._bases[page.start] = base
            base += list_node(page).num_items
        if base != items.num_rows:
            raise CorruptFileError(f"{where}: its lists cover {base} items, but the item column has {items.num_rows}")

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        return concat_arrays(self._read_pieces(start, stop), self.arrow_type)

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Return one array per page of ends."""
        return self._read_pieces(start, stop)

    def _read_pieces(self, start: int, stop: int) -> list[pa.Array]:
        pieces: list[pa.Array] = []
        for page, first, end in page_ranges(self._pages, self._starts, start, stop):
            pieces.extend(self._read_page(page, first, end))
        return pieces

    def _read_page(self, page: Page, start: int, stop: int) -> list[pa.Array]:
        node, length = list_node(page), stop - start
        before = max(start - 1, 0)
        ends_node = list_ends(page, node)
        ends = read_values(page, ends_node, before, stop, page.length)
        offsets, validity = allocate((length + 1) * (8 if self._wide else 4)), allocate((length + 7) // 8)
        try:
            first, last, nulls = offset_codec.decode(
                ends,
                start - before,
                stop - before,
                node.adjustment,
                node.num_items,
                self._wide,
                offsets,
                validity,
            )
        except OffsetOverflowError as error:
            if length == 1:
                raise CorruptFileError(f"{page.where}: one list has more than 2**31 - 1 items") from error
            middle = (start + stop) // 2
            return [*self._read_page(page, start, middle), *self._read_page(page, middle, stop)]
        except CodecError as error:
            raise CorruptFileError(f"{page.where}: {error}") from error
        discard_values(page, ends_node, before, stop)
        if stop == page.length:
            _check_last(page, node, last)
        base = self._bases[page.start]
        items = self._items.read(base + first, base + last)
        return [self._assemble(length, validity, nulls, offsets, items)]

    def _assemble(self, length: int, validity: pa.Buffer, nulls: int, offsets: pa.Buffer, items: pa.Array) -> pa.Array:
        if nulls and not self._nullable:
            raise CorruptFileError(f"{self._where}: holds {nulls} nulls but is declared not nullable")
        buffers = [validity if nulls else None, offsets]
        return pa.Array.from_buffers(self.arrow_type, length, buffers, null_count=nulls, children=[items])

    # -- random access -------------------------------------------------------------------------------------------

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        count = len(rows)
        offsets, validity = allocate((count + 1) * (8 if self._wide else 4)), allocate((count + 7) // 8)
        begins = np.empty(count, np.int64)
        try:
            total, nulls = self._ends.take_offsets(rows, self._wide, offsets, validity, begins)
            item_rows = np.empty(total, np.int64)
            gather.expand_ranges(begins, offsets, self._wide, item_rows)
        except OffsetOverflowError as error:
            raise OversizeError(f"{self._where}: {error}") from error
        except CodecError as error:
            raise CorruptFileError(f"{self._where}: {error}") from error
        return self._assemble(count, validity, nulls, offsets, self._items.take(item_rows))

    @cached_property
    def _ends(self) -> EndsPages:
        # For an unmapped file, this reads the ends of the whole column once: 8 bytes a list, kept on the open file.
        tables: list[EndsTable | None] = []
        for page in self._pages:
            node = list_node(page)
            ends = read_values(page, list_ends(page, node), 0, page.length, page.length)
            if node.adjustment:
                _check_last(page, node, int.from_bytes(ends[-8:].to_pybytes(), "little") % node.adjustment)
            tables.append((ends, node.adjustment, node.num_items, self._bases[page.start], None, None, 0))
        return EndsPages([*self._starts, self.num_rows], tables)
