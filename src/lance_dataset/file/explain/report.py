"""Facts about pages, columns and files, as values that print as tables."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

import pyarrow as pa

from lance_dataset.file.explain.table import html_table, text_table
from lance_dataset.file.sizes import size_text
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Alternative", "ColumnEncoding", "ColumnReport", "EncodingReport", "PageEncoding", "StoredBuffer"]

T = TypeVar("T")
#: Column names, rows of cells, and a flag per column that is true if it is aligned to the right.
_Cells: TypeAlias = "tuple[Sequence[str], list[list[str]], Sequence[bool]]"
#: A report with more pages than this prints one line per column.
_MOST_LINES = 200


@dataclass(frozen=True)
class StoredBuffer:
    """A buffer of a page: a name for its content, and its size in bytes."""

    name: str
    size: int


@dataclass(frozen=True)
class Alternative:
    """Another way to store the values of a page: its name, and the bytes it would take (estimated, without levels)."""

    name: str
    size: int


@dataclass(frozen=True)
class PageEncoding:
    """Encoding of one page.

    Attributes
    ----------
    column
        Dotted path of the field; the items of a list have a name of their own, such as ``tags.item``.
    column_index
        Column of the file.
    page
        Number of the page in its column.
    type
        Arrow type of the values.
    first_row, rows
        Rows of the page. In 2.0 files these are values of the column: below a list, its items.
    layout
        ``mini-block``, ``full-zip``, ``constant``, ``all null``, ``blob`` (positions and sizes of values that lie
        elsewhere in the file), or ``array`` in 2.0 files; in 2.3 with ``sparse`` in front if there are no levels.
    encoding
        Encoding of the values, from the outside in: ``fsst(variable 32)``.
    levels
        Encoding of nulls and lists; empty if there are none.
    values
        Values stored, null ones included.
    dictionary_entries
        Entries of the page's dictionary, None if it has none.
    chunks
        Number of chunks, None for layouts other than mini-block.
    buffers
        The buffers of the page.
    value_bytes, level_bytes
        Bytes of values and of levels in the buffers, as far as they can be told apart.
    plain_bytes
        Bytes of the values without compression: flat, or strings with offsets. None if only decoding would tell,
        and for blobs, which lie outside the page.
    bit_widths
        Least and largest width of bit-packed chunks, in bits.
    nulls
        Null values; None unless the page was decoded (``deep``).
    alternatives
        Other ways to store the values, the smallest first; only the plain one unless ``deep``.
    reason
        Reason for this encoding in one sentence, derived from the page.
    fragment_id
        Fragment of the dataset, None for a single file.
    file
        Path of the file.
    """

    column: str
    column_index: int
    page: int
    type: str
    first_row: int
    rows: int
    layout: str
    encoding: str
    values: int
    buffers: tuple[StoredBuffer, ...]
    levels: str = ""
    dictionary_entries: int | None = None
    chunks: int | None = None
    value_bytes: int | None = None
    level_bytes: int | None = None
    plain_bytes: int | None = None
    bit_widths: tuple[int, int] | None = None
    nulls: int | None = None
    alternatives: tuple[Alternative, ...] = ()
    reason: str = ""
    fragment_id: int | None = None
    file: str = ""

    @property
    def stored_bytes(self) -> int:
        """Total bytes of all buffers of the page."""
        return sum(buffer.size for buffer in self.buffers)

    @property
    def bytes_per_value(self) -> float:
        """Stored bytes per value; 0 if there are no values."""
        return self.stored_bytes / self.values if self.values else 0.0


@dataclass(frozen=True)
class ColumnEncoding:
    """Summary of the pages of a column.

    Attributes
    ----------
    column, type
        As in `PageEncoding`.
    pages, rows, values
        Number of pages, rows and values.
    encodings
        Layouts and encodings of the pages, each with its number of pages, the most frequent first.
    stored_bytes
        Bytes of all buffers.
    plain_bytes
        Bytes of the values without compression, None if that is unknown for a page.
    """

    column: str
    type: str
    pages: int
    rows: int
    values: int
    encodings: tuple[tuple[str, int], ...]
    stored_bytes: int
    plain_bytes: int | None


_PAGE_NAMES = ("column", "page", "rows", "layout", "encoding", "stored", "plain", "ratio", "bytes/value", "why")
_PAGE_RIGHT = (False, True, True, False, False, True, True, True, True, False)
_COLUMN_NAMES = ("column", "type", "pages", "rows", "encoding", "stored", "plain", "ratio")
_COLUMN_RIGHT = (False, False, True, True, False, True, True, True)


class _Printed(Generic[T], Sequence[T], abc.ABC):
    """A sequence that prints as a table."""

    def __init__(self, items: Sequence[T]) -> None:
        self._items = tuple(items)

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        """Return an item, or several as a tuple."""
        return self._items[index]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    @abc.abstractmethod
    def _table(self) -> _Cells:
        """Return the table to print."""

    @abc.abstractmethod
    def _total_line(self) -> str:
        """Return the line below the table."""

    def __str__(self) -> str:
        return f"{text_table(*self._table())}\n{self._total_line()}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._total_line()}>"

    def _repr_html_(self) -> str:
        return f"{html_table(*self._table())}<p>{self._total_line()}</p>"


class ColumnReport(_Printed[ColumnEncoding]):
    """Columns of a report, in the order of the schema. Prints as a table."""

    def _table(self) -> _Cells:
        return _COLUMN_NAMES, [_column_line(column) for column in self], _COLUMN_RIGHT

    def _total_line(self) -> str:
        plain = _total([column.plain_bytes for column in self])
        return f"{len(self):,} columns, {_sizes(sum(column.stored_bytes for column in self), plain)}"


class EncodingReport(_Printed[PageEncoding]):
    """Pages of a file, a fragment or a dataset, column by column. Prints as a table; many pages are summed up."""

    @cached_property
    def columns(self) -> ColumnReport:
        """Summary of the pages by column."""
        grouped: dict[str, list[PageEncoding]] = {}
        for page in self:
            grouped.setdefault(page.column, []).append(page)
        return ColumnReport([_summary(pages) for pages in grouped.values()])

    def column(self, name: str) -> EncodingReport:
        """Return the pages of a column and of the columns below it."""
        return EncodingReport([page for page in self if page.column == name or page.column.startswith(f"{name}.")])

    @property
    def stored_bytes(self) -> int:
        """Bytes of all pages."""
        return sum(page.stored_bytes for page in self)

    @property
    def plain_bytes(self) -> int | None:
        """Bytes of all values without compression; None if that is unknown for a page."""
        return _total([page.plain_bytes for page in self])

    # -- for other programs --------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """Return a table with one row per page and the attributes of `PageEncoding` as columns."""
        rows = [_record(page) for page in self]
        return pa.Table.from_pylist(rows, schema=_SCHEMA)

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame with one row per page and the attributes of `PageEncoding` as columns."""
        return self.to_arrow().to_pandas()

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the stored sizes of the columns beside their plain sizes, with the encodings that take most pages.

        Parameters
        ----------
        axes
            Axes of matplotlib to draw in; None for those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        UnsupportedError
            The extra ``plot`` is not installed.
        """
        from lance_dataset.file.explain.pictures import plot_columns

        return plot_columns(self.columns, axes)

    # -- for people ----------------------------------------------------------------------------------------------

    def _table(self) -> _Cells:
        if len(self) > _MOST_LINES:
            return self.columns._table()
        lines = [_page_line(page) for page in self]
        if any(page.fragment_id is not None for page in self):
            numbered = [[str(page.fragment_id), *line] for page, line in zip(self, lines, strict=True)]
            return ("fragment", *_PAGE_NAMES), numbered, (True, *_PAGE_RIGHT)
        return _PAGE_NAMES, lines, _PAGE_RIGHT

    def _total_line(self) -> str:
        return f"{len(self):,} pages, {_sizes(self.stored_bytes, self.plain_bytes)}"


def _total(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _sizes(stored: int, plain: int | None) -> str:
    return size_text(stored) if plain is None else f"{size_text(stored)}, plain {size_text(plain)}"


def _summary(pages: Sequence[PageEncoding]) -> ColumnEncoding:
    counts: dict[str, int] = {}
    for page in pages:
        name = _what(page)
        counts[name] = counts.get(name, 0) + 1
    return ColumnEncoding(
        column=pages[0].column,
        type=pages[0].type,
        pages=len(pages),
        rows=sum(page.rows for page in pages),
        values=sum(page.values for page in pages),
        encodings=tuple(sorted(counts.items(), key=lambda item: -item[1])),
        stored_bytes=sum(page.stored_bytes for page in pages),
        plain_bytes=_total([page.plain_bytes for page in pages]),
    )


def _what(page: PageEncoding) -> str:
    return f"{page.layout} {page.encoding}".strip()


def _ratio(stored: int, plain: int | None) -> str:
    return f"{stored / plain:.2f}" if plain else ""


def _page_line(page: PageEncoding) -> list[str]:
    stored, plain = page.stored_bytes, page.plain_bytes
    sizes = [size_text(stored), "" if plain is None else size_text(plain), _ratio(stored, plain)]
    place = [page.column, str(page.page), f"{page.rows:,}", page.layout, page.encoding]
    return [*place, *sizes, f"{page.bytes_per_value:.2f}", page.reason]


def _column_line(column: ColumnEncoding) -> list[str]:
    stored, plain = column.stored_bytes, column.plain_bytes
    encodings = "; ".join(f"{name} ({count:,})" if column.pages > count else name for name, count in column.encodings)
    sizes = [size_text(stored), "" if plain is None else size_text(plain), _ratio(stored, plain)]
    return [column.column, column.type, f"{column.pages:,}", f"{column.rows:,}", encodings, *sizes]


_SIZES = pa.list_(pa.struct([pa.field("name", pa.string(), False), pa.field("size", pa.int64(), False)]))
_SCHEMA = pa.schema(
    [
        ("fragment_id", pa.int64()),
        ("file", pa.string()),
        ("column", pa.string()),
        ("column_index", pa.int64()),
        ("page", pa.int64()),
        ("type", pa.string()),
        ("first_row", pa.int64()),
        ("rows", pa.int64()),
        ("layout", pa.string()),
        ("encoding", pa.string()),
        ("levels", pa.string()),
        ("values", pa.int64()),
        ("nulls", pa.int64()),
        ("dictionary_entries", pa.int64()),
        ("chunks", pa.int64()),
        ("min_bits", pa.int64()),
        ("max_bits", pa.int64()),
        ("stored_bytes", pa.int64()),
        ("value_bytes", pa.int64()),
        ("level_bytes", pa.int64()),
        ("plain_bytes", pa.int64()),
        ("bytes_per_value", pa.float64()),
        ("buffers", _SIZES),
        ("alternatives", _SIZES),
        ("reason", pa.string()),
    ]
)


def _record(page: PageEncoding) -> dict[str, Any]:
    low, high = page.bit_widths or (None, None)
    given: dict[str, Any] = {"min_bits": low, "max_bits": high}
    for name in ("buffers", "alternatives"):
        given[name] = [{"name": item.name, "size": item.size} for item in getattr(page, name)]
    return {name: given[name] if name in given else getattr(page, name) for name in _SCHEMA.names}
