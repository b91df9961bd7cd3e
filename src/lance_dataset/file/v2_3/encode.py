"""Encoding of Arrow arrays as pages of 2.3 files: the pages of 2.2 with another descriptor, and sparse pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.column import EncodedPage, WriteBuffer
from lance_dataset.file.structural.encodings.request import Bytes, EncodedChunks, EncodedItems
from lance_dataset.file.structural.layout import ConstantLayout, Layer
from lance_dataset.file.structural.write.choose import choose_chunks, encode_items, prefers_full_zip
from lance_dataset.file.structural.write.constant import constant_value
from lance_dataset.file.structural.write.encoder import LeafEncoder, StructuralEncoder
from lance_dataset.file.structural.write.levels import PageLevels
from lance_dataset.file.structural.write.pages import ChunkLimitError, WrittenPage, full_zip_page, mini_block_page
from lance_dataset.file.structural.write.span import Span, leaf_span
from lance_dataset.file.v2_3.layout import PlanarLayout, SparseLayout
from lance_dataset.file.v2_3.messages import to_planar_layout
from lance_dataset.file.v2_3.sparse_layers import SparseLayers, sparse_layers
from lance_dataset.types.schema import Field

__all__ = ["PlanarEncoder", "PlanarLeafEncoder"]

_MAX_INLINE_BYTES = 32


class PlanarLeafEncoder(LeafEncoder):
    """Encoder of the pages of one column; see `LeafEncoder`."""

    def encode(self, array: pa.Array) -> Iterator[EncodedPage]:
        """Yield the page of some rows of the top-level field."""
        page = self._planar_page(leaf_span(self._branch, array, self._path))
        yield EncodedPage(
            self._column,
            len(array) * self._branch.rows_per_value,
            self._to_message(page.layout),
            page.buffers,
            self._rows,
        )
        self._rows += len(array)

    def _planar_page(self, span: Span) -> PlanarPage:
        if self._is_empty_struct:
            self._empty_structs(span)  # raises if one is null
            return none_page(sparse_layers(span.levels, self._branch))
        if span.num_valid == 0:
            return none_page(sparse_layers(span.levels, self._branch))
        constant = self._constant(span)
        if constant is not None and not span.levels.has_streams:
            return constant
        page = self._sparse(span) if self._options.structure == "sparse" else self._dense(span)
        return page if constant is None or page.size < constant.size else constant

    def _constant(self, span: Span) -> PlanarPage | None:
        """Return a page with one value for all non-null items, None if they differ, are strings or are too wide."""
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
            return self._sparse(span)  # more levels between two values than fit into a chunk

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
    """Encoder of the pages of the leaves at and below a top-level field; see `StructuralEncoder`."""

    def __init__(self, field: Field, first_column: int, version: str, write_buffer: WriteBuffer) -> None:
        super().__init__(field, first_column, version, write_buffer, to_planar_layout, PlanarLeafEncoder)


# -- pages put together -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlanarPage:
    """A page as the writer of 2.3 passes it on; see `WrittenPage`.

    Attributes
    ----------
    layout
        Descriptor of the page.
    buffers
        The page buffers in order, each as a list of parts to be concatenated.
    """

    layout: PlanarLayout
    buffers: list[list[Bytes]]

    @property
    def size(self) -> int:
        """Total bytes of all buffers."""
        return sum(memoryview(part).nbytes for parts in self.buffers for part in parts)


def dense_page(page: WrittenPage) -> PlanarPage:
    """Return a page of 2.2 with the layout of 2.3 and the same buffers."""
    layout = page.layout
    if not isinstance(layout, PlanarLayout):
        raise TypeError(f"2.3 has no pages of layout {type(layout).__name__}")
    return PlanarPage(layout, page.buffers)


def none_page(structure: SparseLayers) -> PlanarPage:
    """Return a page in which no slot has a value: all are null, or structs without children."""
    return _sparse(structure, WrittenPage(ConstantLayout((Layer.NULLABLE_ITEM,)), [], ""))


def constant_page(structure: SparseLayers, value: bytes) -> PlanarPage:
    """Return a page with one value for every slot that is not null."""
    return _sparse(structure, WrittenPage(ConstantLayout((Layer.ALL_VALID_ITEM,), inline_value=value), [], ""))


def chunked_page(structure: SparseLayers, chunks: EncodedChunks) -> PlanarPage:
    """Return a page with a value for every slot of the leaf, including nulls."""
    return _sparse(structure, mini_block_page(_plain(int(chunks.counts.sum())), chunks, large=True))


def zipped_page(structure: SparseLayers, items: EncodedItems, valid: NDArray[np.bool_] | None) -> PlanarPage:
    """Return a page with a value for every valid slot of the leaf.

    Parameters
    ----------
    structure
        The layers.
    items
        A value for every slot. At least one slot is valid.
    valid
        Mask of the valid slots; None if all are valid.
    """
    if items.width is not None:
        count = memoryview(items.values).nbytes // items.width
    else:
        count = memoryview(items.offsets or b"").nbytes // (8 if items.wide else 4) - 1
    if valid is not None:
        items, count = _only(items, valid), int(np.count_nonzero(valid))
    return _sparse(structure, full_zip_page(_plain(count), items))


def _plain(count: int) -> PageLevels:
    """Return the levels of `count` values without structure."""
    return PageLevels((Layer.ALL_VALID_ITEM,), None, None, count, count, 0, 0, 0)


def _only(items: EncodedItems, valid: NDArray[np.bool_]) -> EncodedItems:
    """Return the items of the valid slots only."""
    if items.width is not None:
        rows = np.frombuffer(items.values, np.uint8).reshape(len(valid), items.width)
        return replace(items, values=rows[valid].tobytes())
    kind = pa.large_binary() if items.wide else pa.binary()
    buffers = [None, pa.py_buffer(items.offsets), pa.py_buffer(items.values)]
    chosen = pa.Array.from_buffers(kind, len(valid), buffers).take(pa.array(np.flatnonzero(valid)))
    _, offsets, values = chosen.buffers()
    size = (len(chosen) + 1) * (8 if items.wide else 4)
    return replace(items, values=values if values is not None else b"", offsets=offsets.slice(0, size))


def _sparse(structure: SparseLayers, values: WrittenPage) -> PlanarPage:
    layout = SparseLayout(structure.layers, values.layout)  # type: ignore[arg-type]  # blobs do not come here
    return PlanarPage(layout, [*values.buffers, *([payload] for payload in structure.payloads)])
