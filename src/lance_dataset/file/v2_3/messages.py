"""Page layouts of 2.3 files: parsing of messages, with one check, and conversion back to messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf import empty_pb2
from google.protobuf.message import DecodeError

from lance_dataset._proto import encodings23_pb2 as pb
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.page_encodings import cached_by_encoding
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.encodings.registry import parse_encoding, parse_optional
from lance_dataset.file.structural.layout import ConstantLayout, FullZipLayout, Layer, MiniBlockLayout, list_depth
from lance_dataset.file.v2_3.layout import (
    DictionaryLayout,
    PlanarLayout,
    SparseFixedSizeList,
    SparseLayer,
    SparseLayout,
    SparseList,
    SparseValidity,
    SparseValues,
    StoredSequence,
    ValiditySet,
)

__all__ = ["PLANAR_LAYOUT", "parse_planar_layout", "to_planar_layout"]

#: Protobuf name of the page descriptor of 2.3 files.
PLANAR_LAYOUT = "lance.encodings23.PlanarLayout"
_MAX_LAYERS = 1000
_MAX_COUNT = 2**40
_VALID = (Layer.ALL_VALID_ITEM,)


@cached_by_encoding(pb.PlanarLayout)
def parse_planar_layout(encoding: bytes) -> PlanarLayout:
    """Parse a serialized `PlanarLayout`; equal pages share one value.

    Raises
    ------
    CorruptFileError
        The message is broken or describes something impossible. The caller adds the place.
    UnsupportedError
        The page has an encoding that this release does not read.
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


# -- structure from messages ---------------------------------------------------------------------------------------


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


# -- values from messages ------------------------------------------------------------------------------------------


def _parse_values(message: Any, layers: tuple[Layer, ...] | None) -> Any:
    """Parse the layout of the value plane; `layers` is None on a sparse page."""
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


# -- to messages --------------------------------------------------------------------------------------------------


def to_planar_layout(layout: PlanarLayout) -> pb.PlanarLayout:
    """Return the message of files of version 2.3 for a layout.

    Raises
    ------
    UnsupportedError
        This release only reads pages with the layout.
    """
    if isinstance(layout, SparseLayout):
        sparse = pb.SparseStructure(layers=[_layer_message(layer) for layer in layout.layers])
        return pb.PlanarLayout(
            structure=pb.StructuralPlane(sparse=sparse), values=_values_message(layout.values, dense=False)
        )
    dense = pb.DenseStructure(layers=_numbers(layout.layers))
    return pb.PlanarLayout(structure=pb.StructuralPlane(dense=dense), values=_values_message(layout, dense=True))


def _numbers(layers: Sequence[Layer]) -> list[Any]:
    return [int(layer) for layer in layers]


def _optional(encoding: Encoding | None) -> pb.CompressiveEncoding | None:
    return None if encoding is None else encoding.to_message(pb)


# -- structure to messages -----------------------------------------------------------------------------------------


def _layer_message(layer: SparseLayer) -> pb.SparseStructuralLayer:
    validity = _validity_message(layer.validity)
    if isinstance(layer, SparseFixedSizeList):
        stored = pb.SparseFixedSizeList(dimension=layer.dimension, validity=validity)
        return pb.SparseStructuralLayer(fixed_size_list=stored)
    if isinstance(layer, SparseList):
        return pb.SparseStructuralLayer(
            list=pb.SparseList(
                num_child_slots=layer.num_child_slots,
                non_empty_positions=layer.positions.encoding.to_message(pb),
                num_positions=layer.positions.length,
                counts=layer.counts.encoding.to_message(pb),
                validity=validity,
            )
        )
    return pb.SparseStructuralLayer(validity=validity)


def _validity_message(stored: ValiditySet) -> pb.ValiditySet:
    return pb.ValiditySet(
        meaning=2 if stored.lists_valid else 1,
        positions=stored.positions.encoding.to_message(pb),
        num_positions=stored.positions.length,
    )


# -- values to messages --------------------------------------------------------------------------------------------


def _values_message(layout: SparseValues, dense: bool) -> pb.ValuePlane:
    if isinstance(layout, MiniBlockLayout):
        return pb.ValuePlane(chunked=_chunked_message(layout, dense))
    if isinstance(layout, FullZipLayout):
        return pb.ValuePlane(zipped=_zipped_message(layout, dense))
    if isinstance(layout, ConstantLayout):
        if layout.inline_value is not None:
            return pb.ValuePlane(constant=pb.ConstantValues(inline_value=layout.inline_value))
        if not dense:
            return pb.ValuePlane(none=empty_pb2.Empty())
    raise UnsupportedError(f"pages of layout {layout} cannot be written to files of version 2.3")


def _chunked_message(layout: MiniBlockLayout, dense: bool) -> pb.ChunkedValues:
    levels = pb.Levels(
        rep_compression=_optional(layout.rep),
        def_compression=_optional(layout.definition),
        repetition_index_depth=int(layout.indexed),
    )
    return pb.ChunkedValues(
        value_compression=layout.values.to_message(pb),
        levels=levels if dense else None,
        dictionary=_optional(layout.dictionary),
        num_dictionary_items=layout.dictionary_size,
        num_buffers=layout.num_buffers,
        num_items=layout.num_items if dense else 0,
    )


def _zipped_message(layout: FullZipLayout, dense: bool) -> pb.ZippedValues:
    words = pb.ControlWords(bits_rep=layout.rep_bits, bits_def=layout.def_bits)
    return pb.ZippedValues(
        value_compression=layout.values.to_message(pb),
        control_words=words if dense else None,
        bits_per_value=layout.bits,
        bits_per_offset=layout.length_bits,
        num_items=layout.num_items,
        num_visible_items=layout.num_visible_items,
    )
