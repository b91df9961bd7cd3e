"""Page layouts of 2.3 files as frozen values: structure and values in planes of their own.

A page with levels is translated to the layout of 2.2 whose bytes it has; a sparse page has a layout of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from google.protobuf.message import DecodeError

from lance_dataset._proto import encodings23_pb2 as pb
from lance_dataset.errors import CorruptFileError
from lance_dataset.file.v2_1.compressive import Encoding, parse_encoding, parse_optional
from lance_dataset.file.v2_1.layout import ConstantLayout, FullZipLayout, Layer, MiniBlockLayout, list_depth

__all__ = [
    "PLANAR_LAYOUT",
    "DictionaryLayout",
    "PlanarLayout",
    "SparseFixedSizeList",
    "SparseLayer",
    "SparseLayout",
    "SparseList",
    "SparseValidity",
    "SparseValues",
    "StoredSequence",
    "ValiditySet",
    "parse_planar_layout",
]

#: Protobuf name of the page descriptor of 2.3 files.
PLANAR_LAYOUT = "lance.encodings23.PlanarLayout"
_MAX_LAYERS = 1000
_MAX_COUNT = 2**40
_VALID = (Layer.ALL_VALID_ITEM,)


@dataclass(frozen=True)
class StoredSequence:
    """`length` unsigned integers of 64 bits."""

    encoding: Encoding
    length: int


@dataclass(frozen=True)
class ValiditySet:
    """Which slots of a layer are null: those at `positions`, or (`lists_valid`) all others."""

    positions: StoredSequence
    lists_valid: bool


@dataclass(frozen=True)
class SparseValidity:
    """A struct, or the leaf."""

    validity: ValiditySet


@dataclass(frozen=True)
class SparseList:
    """A list or map: which slots have items, and how many each; the others are empty or null."""

    positions: StoredSequence
    counts: StoredSequence
    num_child_slots: int
    validity: ValiditySet


@dataclass(frozen=True)
class SparseFixedSizeList:
    """A fixed-size list of structs."""

    dimension: int
    validity: ValiditySet


SparseLayer: TypeAlias = SparseValidity | SparseList | SparseFixedSizeList


@dataclass(frozen=True)
class DictionaryLayout:
    """Distinct values, and an index into them for each slot, null ones included."""

    indices: Encoding
    items: FullZipLayout


SparseValues: TypeAlias = MiniBlockLayout | FullZipLayout | ConstantLayout | DictionaryLayout


@dataclass(frozen=True)
class SparseLayout:
    """A page without levels.

    Attributes
    ----------
    layers
        Outermost first; the last is the leaf.
    values
        How the values of the leaf's slots are stored, as a page of 2.2 without lists and nulls would store them: a
        value per slot in chunks (`num_items` is 0 here, as the layers tell it) or behind a dictionary, per valid slot
        if zipped; a `ConstantLayout` without value stands for no values at all.
    """

    layers: tuple[SparseLayer, ...]
    values: SparseValues


PlanarLayout: TypeAlias = MiniBlockLayout | FullZipLayout | ConstantLayout | SparseLayout


@lru_cache(maxsize=4096)
def parse_planar_layout(encoding: bytes) -> PlanarLayout:
    """Parse a serialized `PlanarLayout`; equal pages share one value.

    Raises
    ------
    CorruptFileError
        The message is broken or describes something impossible. The caller adds where.
    UnsupportedError
        An encoding this release does not read.
    """
    try:
        message = pb.PlanarLayout.FromString(encoding)
    except DecodeError as error:
        raise CorruptFileError(f"broken page layout ({error})") from error
    kind = message.structure.WhichOneof("codec")
    if kind == "dense":
        return _parse_values(message.values, _parse_levels(message.structure.dense.layers))
    if kind == "sparse":
        stored = message.structure.sparse.layers
        if not 0 < len(stored) <= _MAX_LAYERS:
            raise CorruptFileError(f"page layout with {len(stored)} layers")
        return SparseLayout(tuple(_parse_layer(layer) for layer in stored), _parse_values(message.values, None))
    raise CorruptFileError("page layout without structure, or of a kind this release does not know")


def _check_count(count: int) -> int:
    if count > _MAX_COUNT:
        raise CorruptFileError(f"page layout with a count of {count}")
    return count


# -- structure ---------------------------------------------------------------------------------------------------


def _parse_levels(values: Any) -> tuple[Layer, ...]:
    if not 0 < len(values) <= _MAX_LAYERS:
        raise CorruptFileError(f"page layout with {len(values)} layers")
    try:
        return tuple(Layer(value) for value in values)
    except ValueError as error:
        raise CorruptFileError(f"page layout with an unknown layer ({error})") from error


def _parse_layer(message: Any) -> SparseLayer:
    kind = message.WhichOneof("layer")
    if kind == "validity":
        return SparseValidity(_parse_validity(message.validity))
    if kind == "list":
        return _parse_list(message.list)
    if kind == "fixed_size_list":
        stored = message.fixed_size_list
        if not 0 < stored.dimension < 2**31 or not stored.HasField("validity"):
            raise CorruptFileError(f"sparse fixed-size list of {stored.dimension} items, or without validity")
        return SparseFixedSizeList(stored.dimension, _parse_validity(stored.validity))
    raise CorruptFileError("sparse layer of no known kind")


def _parse_list(message: Any) -> SparseList:
    if not message.HasField("validity"):
        raise CorruptFileError("sparse list without validity")
    length = _check_count(message.num_positions)
    return SparseList(
        positions=_parse_sequence(message, "non_empty_positions", length),
        counts=_parse_sequence(message, "counts", length),
        num_child_slots=_check_count(message.num_child_slots),
        validity=_parse_validity(message.validity),
    )


def _parse_validity(message: Any) -> ValiditySet:
    if message.meaning not in (1, 2):
        raise CorruptFileError(f"validity of meaning {message.meaning}")
    positions = _parse_sequence(message, "positions", _check_count(message.num_positions))
    return ValiditySet(positions, lists_valid=message.meaning == 2)


def _parse_sequence(message: Any, name: str, length: int) -> StoredSequence:
    if not message.HasField(name):
        raise CorruptFileError(f"sparse layer without its {name}")
    return StoredSequence(parse_encoding(getattr(message, name)), length)


# -- values ------------------------------------------------------------------------------------------------------


def _parse_values(message: Any, layers: tuple[Layer, ...] | None) -> Any:
    """The layout of the value plane; `layers` is None on a sparse page."""
    kind = message.WhichOneof("codec")
    if kind == "chunked":
        return _parse_chunked(message.chunked, layers)
    if kind == "zipped":
        return _parse_zipped(message.zipped, layers)
    if kind == "constant":
        if not message.constant.HasField("inline_value"):
            raise CorruptFileError("constant page without a value")
        return ConstantLayout(layers or _VALID, message.constant.inline_value)
    if kind == "dictionary" and layers is None:
        return _parse_dictionary(message.dictionary)
    if kind == "none" and layers is None:
        return ConstantLayout((Layer.NULLABLE_ITEM,))
    raise CorruptFileError("page layout without values, or of a kind this release does not know")


def _parse_chunked(message: Any, layers: tuple[Layer, ...] | None) -> MiniBlockLayout:
    levels = message.levels
    if layers is None and (message.HasField("levels") or message.num_items):
        raise CorruptFileError("sparse page with levels")
    if levels.repetition_index_depth > 1:
        raise CorruptFileError(f"repetition index of depth {levels.repetition_index_depth}; no release writes it")
    if not message.HasField("value_compression"):
        raise CorruptFileError("chunked values without an encoding")
    layout = MiniBlockLayout(
        values=parse_encoding(message.value_compression),
        layers=layers or _VALID,
        num_items=_check_count(message.num_items),
        num_buffers=message.num_buffers,
        rep=parse_optional(levels, "rep_compression"),
        definition=parse_optional(levels, "def_compression"),
        dictionary=parse_optional(message, "dictionary"),
        dictionary_size=message.num_dictionary_items,
        indexed=levels.repetition_index_depth > 0,
        large=True,
    )
    lists = list_depth(layout.layers)
    if (layout.rep is None) != (lists == 0) or layout.indexed != (lists > 0):
        raise CorruptFileError(f"{lists} list layers do not fit the repetition levels and index of the layout")
    return layout


def _parse_dictionary(message: Any) -> DictionaryLayout:
    if not message.HasField("indices"):
        raise CorruptFileError("dictionary values without indices")
    return DictionaryLayout(parse_encoding(message.indices), _parse_zipped(message.items, None))


def _parse_zipped(message: Any, layers: tuple[Layer, ...] | None) -> FullZipLayout:
    words = message.control_words
    if layers is None and (message.HasField("control_words") or message.num_items != message.num_visible_items):
        raise CorruptFileError("sparse page with control words or invisible items")
    details = message.WhichOneof("details")
    if details is None or not message.HasField("value_compression"):
        raise CorruptFileError("zipped values without an encoding, or with neither a width nor a length")
    if words.bits_rep > 16 or words.bits_def > 16:
        raise CorruptFileError(f"control words of {words.bits_rep} + {words.bits_def} bits")
    bits = message.bits_per_value if details == "bits_per_value" else None
    length_bits = message.bits_per_offset if details == "bits_per_offset" else None
    if (bits is not None and bits % 8) or (length_bits is not None and length_bits not in (32, 64)):
        raise CorruptFileError(f"zipped values of {bits} bits, lengths of {length_bits} bits")
    return FullZipLayout(
        values=parse_encoding(message.value_compression),
        layers=layers or _VALID,
        num_items=_check_count(message.num_items),
        num_visible_items=_check_count(message.num_visible_items),
        rep_bits=words.bits_rep,
        def_bits=words.bits_def,
        bits=bits,
        length_bits=length_bits,
    )
