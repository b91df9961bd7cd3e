"""Encoding of Arrow arrays as pages of 2.1 and 2.2 files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from google.protobuf.message import Message

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.buffers import concat_arrays
from lance_dataset.file.column import ColumnEncoder, EncodedPage, WriteBuffer
from lance_dataset.file.options import EncodingOptions, encoding_options, is_blob
from lance_dataset.file.structural.encodings.fsst_tables import FsstTables
from lance_dataset.file.structural.nesting import Branch, branches
from lance_dataset.file.structural.write.choose import choose_chunks, encode_items, prefers_full_zip
from lance_dataset.file.structural.write.constant import constant_page, empty_struct_page, has_width, null_page
from lance_dataset.file.structural.write.pages import (
    ChunkLimitError,
    WrittenPage,
    blob_page,
    full_zip_page,
    mini_block_page,
    plain_page,
)
from lance_dataset.file.structural.write.span import Span, leaf_span
from lance_dataset.file.structural.write.words import small_page, word_bytes
from lance_dataset.file.zone_gathering import ZoneGathering
from lance_dataset.types.schema import Field

__all__ = ["LeafEncoder", "StructuralEncoder"]

#: A file whose first page has fewer rows is read faster than bounds of its values.
_BOUNDED_ROWS = 1 << 12
#: Values of a chunk whose levels are always small, at any bit width.
_FEW_VALUES = 1024


class StructuralEncoder(ColumnEncoder):
    """Encoder of the pages of the leaves at and below a top-level field.

    Parameters
    ----------
    field
        The field.
    first_column
        Column index of its first leaf.
    version
        "2.1" or "2.2".
    write_buffer
        Appends data that is stored outside pages.
    to_message
        Returns the message of the file version that describes a page.
    leaf_encoder
        Class of the encoders of leaves.
    """

    def __init__(
        self,
        field: Field,
        first_column: int,
        version: str,
        write_buffer: WriteBuffer,
        to_message: Callable[[Any], Message],
        leaf_encoder: type[LeafEncoder] | None = None,
    ) -> None:
        self._type = field.storage_type
        open_leaf = leaf_encoder or LeafEncoder
        self._leaves = tuple(
            open_leaf(branch, field, first_column + number, version, write_buffer, to_message)
            for number, branch in enumerate(branches(field))
        )
        self.is_independent = not any(leaf.is_blob for leaf in self._leaves)
        self._first_column = first_column
        self._gathers = False
        self._bounds: ZoneGathering | None = None

    def gather_bounds(self) -> None:
        """See `ColumnEncoder.gather_bounds`; values in structs and lists have none."""
        self._gathers = self.is_independent

    def _gather(self, array: pa.Array) -> None:
        if self._bounds is None:
            # not before there are many rows, as there may be thousands of columns
            self._gathers = len(array) >= _BOUNDED_ROWS and ZoneGathering.supports(self._type)
            if not self._gathers:
                return
            self._bounds = ZoneGathering(self._type)
        self._bounds.add(array)

    def gathered(self) -> Mapping[int, ZoneGathering]:
        """See `ColumnEncoder.gathered`."""
        return {} if self._bounds is None else {self._first_column: self._bounds}

    def encode(self, arrays: Sequence[pa.Array]) -> Iterator[EncodedPage]:
        """See `ColumnEncoder.encode`."""
        for array in _joined(arrays, self._type):
            if self._gathers:
                self._gather(array)
            for leaf in self._leaves:
                yield from leaf.encode(array)


def _joined(arrays: Sequence[pa.Array], arrow_type: pa.DataType) -> Sequence[pa.Array]:
    """Return one array, or all of them if one cannot hold their text or their dictionary entries."""
    try:
        return [concat_arrays(list(arrays), arrow_type)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return arrays


class LeafEncoder:
    """Encoder of the pages of one column.

    Parameters
    ----------
    branch
        The leaf and the fields above it.
    top
        The top-level field.
    column
        Column index.
    version
        "2.1" or "2.2".
    write_buffer
        Appends data that is stored outside pages.
    to_message
        Returns the message of the file version that describes a page.
    """

    def __init__(
        self,
        branch: Branch,
        top: Field,
        column: int,
        version: str,
        write_buffer: WriteBuffer,
        to_message: Callable[[Any], Message],
    ) -> None:
        self._branch = branch
        self._column = column
        self._version = version
        self._write_buffer = write_buffer
        self._to_message = to_message
        self._compact = version != "2.1"
        self._options = _options(branch.leaf, top)
        self._path = ".".join([*[nest.field.name for nest in branch.above], branch.leaf.name])
        self._is_empty_struct = branch.leaf.logical_type == "struct" and not branch.leaf.children
        self._word_bytes = 0 if branch.above else word_bytes(branch.leaf.storage_type, self._options)
        self._tables = None if self._word_bytes else FsstTables()
        self.is_blob = is_blob(branch.leaf)
        self._rows = 0

    def encode(self, array: pa.Array) -> Iterator[EncodedPage]:
        """Yield the pages of some rows of the top-level field, usually one."""
        if self._word_bytes and not array.null_count:
            small = small_page(array, self._word_bytes, self._compact, self._to_message)
            if small is not None:
                yield EncodedPage(self._column, len(array), *small, self._rows)
                self._rows += len(array)
                return
        span = leaf_span(self._branch, array, self._path)
        try:
            page = self._page(span)
        except ChunkLimitError:
            if len(array) > 1:
                middle = len(array) // 2
                yield from self.encode(array.slice(0, middle))
                yield from self.encode(array.slice(middle))
                return
            page = self._full_zip(span)
        yield EncodedPage(
            self._column,
            len(array) * self._branch.rows_per_value,
            self._to_message(page.layout),
            page.buffers,
            self._rows,
        )
        self._rows += len(array)

    def _page(self, span: Span) -> WrittenPage:
        levels = span.levels
        if self._is_empty_struct:
            return self._empty_structs(span)
        if self.is_blob:
            return blob_page(span, self._write_buffer, self._compact)
        if span.num_valid == 0:
            return null_page(levels, self._compact)
        constant = constant_page(span) if self._compact else None
        if constant is not None and not (levels.has_streams and has_width(span.values.type)):
            return constant
        page = self._values_page(span)
        # levels of a constant page are not encoded, so chunks may be smaller
        return page if constant is None or page.size < constant.size else constant

    def _empty_structs(self, span: Span) -> WrittenPage:
        if span.levels.has_streams:
            raise UnsupportedError(
                f"column {self._path!r}: structs without a child cannot be null, nor be inside a null struct, "
                f"in file version {self._version}; give the struct a child"
            )
        return empty_struct_page()

    def _values_page(self, span: Span) -> WrittenPage:
        field, options, version = self._branch.leaf, self._options, self._version
        levels = span.levels
        if prefers_full_zip(span.values, field, options, version):
            return self._full_zip(span)
        alone = not levels.has_streams and options.structure is None
        chunks = choose_chunks(span.values, span.validity, field, options, version, alone=alone, tables=self._tables)
        if chunks is None:
            if options.structure == "miniblock":
                raise UnsupportedError(
                    f"column {self._path!r}: its values are too wide for chunks, which its metadata asks for; "
                    "remove lance-encoding:structural-encoding"
                )
            return self._full_zip(span)
        if alone and chunks.dictionary is None and chunks.encoding.plain_item_bits is not None:
            return plain_page(levels, chunks)
        try:
            return mini_block_page(levels, chunks, self._compact)
        except ChunkLimitError:
            if self._compact:
                raise
        # in 2.1 the levels of many values may not fit into a chunk
        chunks = choose_chunks(span.values, span.validity, field, options, version, _FEW_VALUES, tables=self._tables)
        if chunks is None:
            raise ChunkLimitError
        return mini_block_page(levels, chunks, self._compact)

    def _full_zip(self, span: Span) -> WrittenPage:
        items = encode_items(span.values, span.validity, self._branch.leaf, self._options, self._version, self._tables)
        return full_zip_page(span.levels, items)


def _options(leaf: Field, top: Field) -> EncodingOptions:
    """Return the options of a leaf. As in the reference, all leaves of a column follow its structural encoding."""
    options = encoding_options(leaf)
    if options.structure is not None or leaf is top:
        return options
    return replace(options, structure=encoding_options(top).structure)
