"""From Arrow arrays to the pages of 2.3 files: those of 2.2 in another description, and sparse ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.column import EncodedPage, WriteBuffer
from lance_dataset.file.v2_1.layout import ConstantLayout
from lance_dataset.file.v2_1.write.choose import choose_chunks, prefers_full_zip
from lance_dataset.file.v2_1.write.choose_items import encode_items
from lance_dataset.file.v2_1.write.constant_values import constant_value
from lance_dataset.file.v2_1.write.encode import LeafEncoder, StructuralEncoder
from lance_dataset.file.v2_1.write.mini_block_page import ChunkLimitError
from lance_dataset.file.v2_1.write.span import Span, leaf_span
from lance_dataset.file.v2_3.messages import to_planar_layout
from lance_dataset.file.v2_3.sparse_layers import sparse_layers
from lance_dataset.file.v2_3.sparse_page import (
    PlanarPage,
    chunked_page,
    constant_page,
    dense_page,
    none_page,
    zipped_page,
)
from lance_dataset.schema import Field

__all__ = ["PlanarEncoder", "PlanarLeafEncoder"]

_MAX_INLINE_BYTES = 32


class PlanarLeafEncoder(LeafEncoder):
    """Pages of one column; see `v2_1.encode.LeafEncoder`."""

    def encode(self, array: pa.Array) -> Iterator[EncodedPage]:
        """The page of some rows of the top-level field."""
        page = self._planar_page(leaf_span(self._branch, array, self._path))
        yield EncodedPage(
            self._column,
            len(array) * self._branch.rows_per_value,
            to_planar_layout(page.layout),
            page.buffers,
            self._rows,
        )
        self._rows += len(array)

    def _planar_page(self, span: Span) -> PlanarPage:
        if self._is_empty_struct:
            self._empty_structs(span)  # refuses null ones
            return none_page(sparse_layers(span.levels, self._branch))
        if span.num_valid == 0:
            return none_page(sparse_layers(span.levels, self._branch))
        constant = self._constant(span)
        if constant is not None and not span.levels.has_streams:
            return constant
        page = self._sparse(span) if self._options.structure == "sparse" else self._dense(span)
        return page if constant is None or page.size < constant.size else constant

    def _constant(self, span: Span) -> PlanarPage | None:
        """The page of one value for all items that are not null; None if they differ, or are texts or wide."""
        value = constant_value(span.values, span.validity)
        if not isinstance(value, bytes) or len(value) > _MAX_INLINE_BYTES:
            return None
        if not span.levels.has_streams and self._options.structure != "sparse":
            return PlanarPage(ConstantLayout(span.levels.layers, inline_value=value), [])
        return constant_page(sparse_layers(span.levels, self._branch), value)

    def _dense(self, span: Span) -> PlanarPage:
        try:
            return dense_page(self._values_page(span))
        except ChunkLimitError:
            return self._sparse(span)  # more levels between two values than a chunk holds

    def _sparse(self, span: Span) -> PlanarPage:
        field, options, version = self._branch.leaf, replace(self._options, structure=None), self._version
        structure = sparse_layers(span.levels, self._branch)
        chunks = None
        if not prefers_full_zip(span.values, field, options, version):
            chunks = choose_chunks(span.values, span.validity, field, options, version)
        if chunks is not None:
            return chunked_page(structure, chunks)
        items = encode_items(span.values, span.validity, field, options, version)
        return zipped_page(structure, items, _valid(span))


def _valid(span: Span) -> NDArray[np.bool_] | None:
    if span.validity is None:
        return None
    bits = np.frombuffer(span.validity, np.uint8)
    return np.unpackbits(bits, count=len(span.values), bitorder="little").view(np.bool_)


class PlanarEncoder(StructuralEncoder):
    """Pages of the leaves at and below a top-level field; see `v2_1.encode.StructuralEncoder`."""

    def __init__(self, field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> None:
        super().__init__(field, first_column, version, write_buffer, PlanarLeafEncoder)
