"""Page layouts of 2.3 files -> messages, the counterpart of `layout`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf import empty_pb2

from lance_dataset._proto import encodings23_pb2 as pb
from lance_dataset.errors import UnsupportedError
from lance_dataset.file.v2_1.compressive import Delta, Encoding, Range, to_message
from lance_dataset.file.v2_1.layout import ConstantLayout, FullZipLayout, Layer, MiniBlockLayout
from lance_dataset.file.v2_3.layout import (
    PlanarLayout,
    SparseFixedSizeList,
    SparseLayer,
    SparseLayout,
    SparseList,
    SparseValues,
    ValiditySet,
)

__all__ = ["to_planar_layout"]


def to_planar_layout(layout: PlanarLayout) -> pb.PlanarLayout:
    """The layout as a message of 2.3.

    Raises
    ------
    UnsupportedError
        A layout that this release reads only.
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


def _encoding_message(encoding: Encoding) -> pb.CompressiveEncoding:
    if isinstance(encoding, Range):
        stored = pb.Range(uncompressed_bits_per_value=encoding.bits, start=encoding.start, step=encoding.step)
        return pb.CompressiveEncoding(range=stored)
    if isinstance(encoding, Delta):
        deltas = _encoding_message(encoding.deltas)
        sums = pb.Delta(uncompressed_bits_per_value=encoding.bits, base=encoding.base, deltas=deltas)
        return pb.CompressiveEncoding(delta=sums)
    # the encodings that 2.2 has, too, have the same numbers
    return pb.CompressiveEncoding.FromString(to_message(encoding).SerializeToString())


def _optional(encoding: Encoding | None) -> pb.CompressiveEncoding | None:
    return None if encoding is None else _encoding_message(encoding)


# -- structure ---------------------------------------------------------------------------------------------------


def _layer_message(layer: SparseLayer) -> pb.SparseStructuralLayer:
    validity = _validity_message(layer.validity)
    if isinstance(layer, SparseFixedSizeList):
        stored = pb.SparseFixedSizeList(dimension=layer.dimension, validity=validity)
        return pb.SparseStructuralLayer(fixed_size_list=stored)
    if isinstance(layer, SparseList):
        return pb.SparseStructuralLayer(
            list=pb.SparseList(
                num_child_slots=layer.num_child_slots,
                non_empty_positions=_encoding_message(layer.positions.encoding),
                num_positions=layer.positions.length,
                counts=_encoding_message(layer.counts.encoding),
                validity=validity,
            )
        )
    return pb.SparseStructuralLayer(validity=validity)


def _validity_message(stored: ValiditySet) -> pb.ValiditySet:
    return pb.ValiditySet(
        meaning=2 if stored.lists_valid else 1,
        positions=_encoding_message(stored.positions.encoding),
        num_positions=stored.positions.length,
    )


# -- values ------------------------------------------------------------------------------------------------------


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
        value_compression=_encoding_message(layout.values),
        levels=levels if dense else None,
        dictionary=_optional(layout.dictionary),
        num_dictionary_items=layout.dictionary_size,
        num_buffers=layout.num_buffers,
        num_items=layout.num_items if dense else 0,
    )


def _zipped_message(layout: FullZipLayout, dense: bool) -> pb.ZippedValues:
    words = pb.ControlWords(bits_rep=layout.rep_bits, bits_def=layout.def_bits)
    return pb.ZippedValues(
        value_compression=_encoding_message(layout.values),
        control_words=words if dense else None,
        bits_per_value=layout.bits,
        bits_per_offset=layout.length_bits,
        num_items=layout.num_items,
        num_visible_items=layout.num_visible_items,
    )
