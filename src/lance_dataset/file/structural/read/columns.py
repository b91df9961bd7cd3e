"""Opening of column readers for a schema field from the columns of a 2.1 (or 2.2) file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.blob_fields import DESCRIPTOR
from lance_dataset.file.buffers import bitmap_at_zero
from lance_dataset.file.column import ColumnReader, NullColumn, Part
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.options import is_blob, is_blob_descriptor, is_blob_v2, is_packed
from lance_dataset.file.structural.nesting import Branch, branches, merge_branches
from lance_dataset.file.structural.read.leaf import LeafColumn
from lance_dataset.file.structural.read.page import PageGrammar, open_pages
from lance_dataset.types.schema import Field
from lancecodec.take import ColumnTaker

__all__ = ["Locate", "open_column"]

#: Returns the file and the column index that hold a field, None if it is in no file.
Locate = Callable[[Field], "tuple[FileMetadata, int] | None"]

_REMEMBERED = 1 << 13
#: The fields are kept with their branches, so that no other field gets the same id.
_known_branches: dict[int, tuple[Field, tuple[Branch, ...]]] = {}


def open_column(field: Field, locate: Locate, num_rows: int, grammar: PageGrammar) -> ColumnReader:
    """Open the columns of a field and of everything below it.

    Parameters
    ----------
    field
        A field of the (projected) schema.
    locate
        Finds the file and column of each leaf.
    num_rows
        Number of values the field must have.
    grammar
        Descriptions and readers of the pages of the file version.

    Raises
    ------
    CorruptFileError
        A column does not fit its field, or has another number of rows.
    UnsupportedError
        The file uses a feature that this release does not read.
    """
    stored = field
    if field.children or field.metadata:
        found = (locate(node) for node in field.walk())
        file = next((metadata for metadata, _ in filter(None, found)), None)
        stored = with_packed_children(field, file)
    column = _open_whole(stored, locate, num_rows, grammar)
    return column if stored is field else PrunedColumn(column, stored, field)


def _branches(field: Field) -> tuple[Branch, ...]:
    """Return the branches of a field, the same for every file; looked up by id, as comparing fields is slower."""
    known = _known_branches.get(id(field))
    if known is not None and known[0] is field:
        return known[1]
    found = tuple(branches(field))
    if len(_known_branches) >= _REMEMBERED:
        _known_branches.clear()
    _known_branches[id(field)] = field, found
    return found


def _open_whole(field: Field, locate: Locate, num_rows: int, grammar: PageGrammar) -> ColumnReader:
    leaves = [_open_leaf(branch, locate, num_rows, grammar) for branch in _branches(field)]
    first = leaves[0]
    if len(leaves) == 1 and first is not None and not first.branch.above:
        return first
    if all(leaf is None for leaf in leaves):
        return NullColumn(field.storage_type, num_rows)
    return StructuralColumn(field, leaves, num_rows)


def _open_leaf(branch: Branch, locate: Locate, num_rows: int, grammar: PageGrammar) -> LeafColumn | None:
    found = locate(branch.leaf)
    if found is None:
        return None
    metadata, index = found
    column = metadata.column(index)
    where = f"{metadata.source.path}, column {index} ({branch.leaf.name!r})"
    if column.kind != "values":
        raise UnsupportedError(f"{where}: column encoding {column.kind!r} cannot be read by this release")
    if branch.leaf.metadata:
        _check_blob(branch, where)
    pages = open_pages(metadata.source, column, where, branch.rows_per_value, grammar)
    leaf = LeafColumn(pages, branch, where, grammar.open_page, metadata, index)
    if leaf.num_rows != num_rows:
        raise CorruptFileError(f"{where}: has {leaf.num_rows} rows instead of {num_rows}")
    return leaf


def _check_blob(branch: Branch, where: str) -> None:
    """Raise UnsupportedError for blobs that cannot be read from a column alone."""
    if is_blob_v2(branch.leaf):
        raise UnsupportedError(f"{where}: a blob column of version 2 can only be read from its dataset")
    if is_blob(branch.leaf) and any(nest.kind != "struct" for nest in branch.above):
        raise UnsupportedError(f"{where}: a blob column inside a list, whose lengths no file keeps")


class StructuralColumn(ColumnReader):
    """A field whose leaves contain all of its structure.

    Parameters
    ----------
    field
        The field.
    leaves
        The column of each leaf, None for a leaf that is in no file.
    num_rows
        Number of values.
    """

    def __init__(self, field: Field, leaves: Sequence[LeafColumn | None], num_rows: int) -> None:
        self.arrow_type = field.storage_type
        self.num_rows = num_rows
        self._field = field
        self._leaves = leaves
        self._first = next(leaf for leaf in leaves if leaf is not None)

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        arrays = [None if leaf is None else leaf.read(start, stop) for leaf in self._leaves]
        return self._merge(arrays, stop - start)

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Return one array per page, of the first leaf if there are several."""
        if len(self._leaves) == 1:
            return [self._merge([piece], len(piece)) for piece in self._first.read_chunks(start, stop)]
        if start == stop:
            return []
        starts = self._first.page_starts
        cuts = starts[(starts > start) & (starts < stop)].tolist()
        return [self.read(low, high) for low, high in zip([start, *cuts], [*cuts, stop], strict=True)]

    def parts(self, start: int, stop: int) -> list[Part]:
        """Return the parts of the leaf with the most parts; crossing pages of other leaves are read in pieces."""
        leaves = [leaf.parts(start, stop) for leaf in self._leaves if leaf is not None]
        cost = sum(part.cost for parts in leaves for part in parts) / max(stop - start, 1)
        return [Part(part.start, part.stop, cost * (part.stop - part.start)) for part in max(leaves, key=len)]

    def will_need(self, rows: NDArray[np.int64]) -> None:
        """See `ColumnReader.will_need`."""
        for leaf in self._leaves:
            if leaf is not None:
                leaf.will_need(rows)

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        return self._merge([None if leaf is None else leaf.take(rows) for leaf in self._leaves], len(rows))

    def taker(self) -> ColumnTaker | None:
        """Return the taker of the only leaf, None if the field has several leaves or more than one level of nesting."""
        return self._first.taker() if len(self._leaves) == 1 and not self._field.children[0].children else None

    def _merge(self, arrays: list[pa.Array | None], length: int) -> pa.Array:
        return merge_branches(self._field, arrays, length, self._first.where)


# -- some children of packed structs: rows are read whole, even for one child -----------------------------------


def with_packed_children(field: Field, file: FileMetadata | None) -> Field:
    """Return the field with all stored children of every packed struct at or below it.

    Returns
    -------
    Field
        The field itself if no child was missing.
    """
    if file is None or not any(is_packed(node) for node in field.walk()):
        return field
    stored = file.schema.by_id

    def completed(node: Field) -> Field:
        if is_blob_descriptor(node):
            return node if len(node.children) == len(DESCRIPTOR) else replace(node, children=DESCRIPTOR)
        known = stored.get(node.id)
        if is_packed(node) and known is not None and len(known.children) > len(node.children):
            return replace(node, children=known.children)
        children = tuple(completed(child) for child in node.children)
        same = all(new is old for new, old in zip(children, node.children, strict=True))
        return node if same else replace(node, children=children)

    return completed(field)


class PrunedColumn(ColumnReader):
    """A column without some children of its structs.

    Parameters
    ----------
    inner
        The whole column.
    stored
        The field of the whole column.
    field
        The field to return, whose structs have fewer children.
    """

    def __init__(self, inner: ColumnReader, stored: Field, field: Field) -> None:
        self.arrow_type = field.storage_type
        self.num_rows = inner.num_rows
        self._inner = inner
        self._stored = stored
        self._field = field

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        return _pruned(self._inner.read(start, stop), self._stored, self._field)

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """See `ColumnReader.read_chunks`."""
        return [_pruned(piece, self._stored, self._field) for piece in self._inner.read_chunks(start, stop)]

    def parts(self, start: int, stop: int) -> list[Part]:
        """See `ColumnReader.parts`."""
        return self._inner.parts(start, stop)

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        return _pruned(self._inner.take(rows), self._stored, self._field)


def _pruned(array: pa.Array, stored: Field, field: Field) -> pa.Array:
    """Return the array with only the children that `field` has; all other buffers are shared."""
    if stored is field or not field.children:
        return array
    kind, kinds = field.storage_type, pa.types
    if kinds.is_struct(kind):
        numbers = {child.id: number for number, child in enumerate(stored.children)}
        children = [
            _pruned(array.field(numbers[child.id]), stored.children[numbers[child.id]], child)
            for child in field.children
        ]
        validity = array.buffers()[0]
        bits = [None if validity is None else bitmap_at_zero(validity, array.offset, len(array))]
        return pa.Array.from_buffers(kind, len(array), bits, array.null_count, 0, children)
    # lists, maps and fixed-size lists have one child
    items = _pruned(array.values if not kinds.is_map(kind) else _entries(array), stored.children[0], field.children[0])
    buffers = array.buffers()[: 1 if kinds.is_fixed_size_list(kind) else 2]
    return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, array.offset, [items])


def _entries(array: pa.MapArray) -> pa.StructArray:
    return pa.StructArray.from_arrays([array.keys, array.items], fields=[array.type.key_field, array.type.item_field])
