"""Sparse page layouts of pylance 10 to 13, translated into those of 2.3."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from lance_dataset._proto import encodings21_sparse_pb2 as pb
from lance_dataset.errors import CorruptFileError
from lance_dataset.file.page_encodings import cached_by_encoding
from lance_dataset.file.structural.encodings.constant import Constant
from lance_dataset.file.structural.encodings.registry import parse_encoding
from lance_dataset.file.structural.encodings.sequences import Delta, Range
from lance_dataset.file.structural.layout import Layer, Layout, MiniBlockLayout
from lance_dataset.file.v2_1.messages import parse_page_layout as parse_level_layout
from lance_dataset.file.v2_3.layout import (
    SparseFixedSizeList,
    SparseLayer,
    SparseLayout,
    SparseList,
    SparseValidity,
    StoredSequence,
    ValiditySet,
)

__all__ = ["EarlierSparseLayout", "parse_page_layout"]

_BITS = 64
_MAX_LAYERS = 1000
_MAX_COUNT = 2**40


@dataclass(frozen=True)
class EarlierSparseLayout:
    """A sparse layout, with facts that only earlier pages store.

    Attributes
    ----------
    layout
        The layout. Positions that are stored one by one are encoded as a `Delta` from 0. Unlike in 2.3, the first
        position is stored too.
    slots
        Number of slots of each layer.
    leaf_slots
        Number of values of the page.
    """

    layout: SparseLayout
    slots: tuple[int, ...]
    leaf_slots: int


@cached_by_encoding(pb.PageLayout)
def parse_page_layout(encoding: bytes) -> Layout | EarlierSparseLayout:
    """Parse a serialized `PageLayout`, sparse or not; equal pages share one value.

    Raises
    ------
    CorruptFileError
        The message is broken or describes something impossible. The caller adds the place.
    UnsupportedError
        The page has an encoding that this release does not read.
    """
    try:
        message = pb.PageLayout.FromString(encoding)
    except DecodeError as error:
        raise CorruptFileError(f"broken page layout ({error})") from error
    if not message.HasField("sparse_layout"):
        return parse_level_layout(encoding)
    return _parse_sparse(message.sparse_layout)


def _parse_sparse(message: pb.SparseLayout) -> EarlierSparseLayout:
    stored = message.structural_layers
    if not 0 < len(stored) <= _MAX_LAYERS:
        raise CorruptFileError(f"page layout with {len(stored)} layers")
    if not message.HasField("value_compression") or not message.has_large_chunk:
        raise CorruptFileError("sparse page without an encoding of its values, or with small chunks")
    values = MiniBlockLayout(
        values=parse_encoding(message.value_compression),
        layers=(Layer.ALL_VALID_ITEM,),
        num_items=0,
        num_buffers=message.num_buffers,
        large=True,
    )
    parsed = [_parse_layer(layer) for layer in stored]
    layers, slots = tuple(layer for layer, _ in parsed), tuple(count for _, count in parsed)
    return EarlierSparseLayout(SparseLayout(layers, values), slots, _check_count(message.num_visible_items))


def _check_count(count: int) -> int:
    if count > _MAX_COUNT:
        raise CorruptFileError(f"page layout with a count of {count}")
    return count


def _parse_layer(message: pb.StructuralLayer) -> tuple[SparseLayer, int]:
    """Return a layer and its number of slots."""
    kind = message.WhichOneof("layer")
    if kind == "validity":
        slots = _check_count(message.validity.num_slots)
        return SparseValidity(_parse_validity(message.validity.validity, slots)), slots
    if kind == "list":
        return _parse_list(message.list)
    if kind == "fixed_size_list":
        stored = message.fixed_size_list
        if not 0 < stored.dimension < 2**31:
            raise CorruptFileError(f"sparse fixed-size list of {stored.dimension} items")
        slots = _check_count(stored.num_slots)
        return SparseFixedSizeList(stored.dimension, _parse_validity(stored.validity, slots)), slots
    raise CorruptFileError("sparse layer of no known kind")


def _parse_list(message: pb.ListLayer) -> tuple[SparseLayer, int]:
    slots = _check_count(message.num_slots)
    positions = _parse_positions(message.non_empty_positions, slots)
    layer = SparseList(
        positions=positions,
        counts=_parse_counts(message.counts, positions.length),
        num_child_slots=_check_count(message.num_child_slots),
        validity=_parse_validity(message.validity, slots),
    )
    return layer, slots


def _parse_validity(message: pb.ValiditySet, slots: int) -> ValiditySet:
    if message.meaning not in (1, 2):
        raise CorruptFileError(f"validity of meaning {message.meaning}")
    return ValiditySet(_parse_positions(message.positions, slots), lists_valid=message.meaning == 2)


def _parse_positions(message: pb.PositionSet, slots: int) -> StoredSequence:
    kind, length = message.WhichOneof("positions"), _check_count(message.num_positions)
    if kind == "explicit":
        return StoredSequence(Delta(_BITS, 0, parse_encoding(message.explicit)), length)
    if kind == "range":
        if _check_count(message.range.count) != length:
            raise CorruptFileError(f"{length} positions in a range of {message.range.count}")
        return StoredSequence(Range(_BITS, message.range.start, 1), length)
    if kind == "all":
        return StoredSequence(Range(_BITS, 0, 1), slots)
    if kind == "empty" and length == 0:
        return StoredSequence(Constant(None), 0)
    raise CorruptFileError(f"{length} positions of no known kind, or none that are some")


def _parse_counts(message: pb.CountSet, length: int) -> StoredSequence:
    kind = message.WhichOneof("counts")
    if kind == "explicit":
        return StoredSequence(parse_encoding(message.explicit), length)
    if kind == "constant" and length:
        return StoredSequence(Constant(message.constant.count.to_bytes(8, "little")), length)
    if length == 0:
        return StoredSequence(Constant(None), 0)
    raise CorruptFileError("sparse list without its counts")
