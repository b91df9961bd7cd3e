"""Page layouts from before 2.1 was stable, translated into the layouts of 2.1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from google.protobuf.message import DecodeError

from lance_dataset._proto import encodings21_pb2 as pb
from lance_dataset._proto import encodings21_pre_pb2 as pre
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.page_encodings import cached_by_encoding
from lance_dataset.file.structural.layout import (
    ConstantLayout,
    FullZipLayout,
    Layer,
    Layout,
    MiniBlockLayout,
    list_depth,
)
from lance_dataset.file.v2_1.messages import parse_page_layout as parse_stable
from lance_dataset.file.v2_1.pre.encodings import WRITERS, parse_message, to_stable
from lance_dataset.late_dataclass import dataclass

__all__ = ["PRE_LAYOUT", "PreLayout", "parse_page_layout"]

#: Protobuf name of the page descriptor.
PRE_LAYOUT = "lance.encodings.PageLayout"


@dataclass(frozen=True)
class PreLayout:
    """A layout of 2.1, with the ways in which its page differs from 2.1.

    Attributes
    ----------
    layout
        The layout; its number of items is 0 if the page does not store it.
    has_layers
        True if the page stores its layers. Releases before 0.21 did not; the layers of `layout` are then placeholders.
    early_chunks
        True if its chunks have the header of releases up to 0.25.
    """

    layout: MiniBlockLayout | FullZipLayout | ConstantLayout
    has_layers: bool
    early_chunks: bool = False

    def with_items(self, values: int) -> MiniBlockLayout | FullZipLayout | ConstantLayout:
        """Return the layout with a number of items, `values` if the page does not store one and has no lists."""
        layout = self.layout
        if isinstance(layout, MiniBlockLayout) and not self.has_layers:
            return replace(layout, num_items=values)
        if isinstance(layout, FullZipLayout) and not layout.num_items and not list_depth(layout.layers):
            return replace(layout, num_items=values, num_visible_items=values)
        return layout


@cached_by_encoding(pre.PageLayout)
def parse_page_layout(encoding: bytes) -> PreLayout:
    """Parse a serialized `PageLayout`; equal pages share one value.

    Raises
    ------
    CorruptFileError
        The message is broken or describes something impossible. The caller adds the place.
    UnsupportedError
        The page has an unknown byte layout.
    """
    try:
        message = pre.PageLayout.FromString(encoding)
    except DecodeError as error:
        raise CorruptFileError(f"broken page layout ({error})") from error
    kind = message.WhichOneof("layout")
    if kind == "mini_block_layout":
        return _parse_mini_block(message.mini_block_layout)
    if kind == "full_zip_layout":
        return _parse_full_zip(message.full_zip_layout)
    if kind == "all_null_layout":
        layers = list(message.all_null_layout.layers)
        stable = pb.ConstantLayout(layers=_layers(layers or [Layer.NULLABLE_ITEM]))
        return _translated(pb.PageLayout(constant_layout=stable), layers)
    raise UnsupportedError(f"the page layout is empty, or of a kind that is not known from {WRITERS}")


def _translated(message: pb.PageLayout, layers: list[int], early_chunks: bool = False) -> PreLayout:
    layout: Layout = parse_stable(message.SerializeToString())
    assert isinstance(layout, MiniBlockLayout | FullZipLayout | ConstantLayout)
    return PreLayout(layout, bool(layers), early_chunks)


def _layers(numbers: Iterable[int]) -> Any:
    """Return the numbers, typed as the enumerations that the generated code expects."""
    return list(numbers)


# -- mini-block --------------------------------------------------------------------------------------------------


def _parse_mini_block(data: bytes) -> PreLayout:
    if parse_message(pre.MiniBlockProbe, data).HasField("late_layers"):
        late = parse_message(pre.LateMiniBlockLayout, data)
        stable = _mini_block(late, list(late.layers), early=False)
        stable.num_dictionary_items = late.num_dictionary_items
        stable.num_buffers = late.num_buffers
        return _translated(pb.PageLayout(mini_block_layout=stable), list(late.layers))
    early = parse_message(pre.EarlyMiniBlockLayout, data)
    layers = list(early.layers)
    stable = _mini_block(early, layers or [_item_layer(early)], early=True)
    stable.num_buffers = 1
    return _translated(pb.PageLayout(mini_block_layout=stable), layers, early_chunks=True)


def _mini_block(
    message: pre.EarlyMiniBlockLayout | pre.LateMiniBlockLayout, layers: list[int], early: bool
) -> pb.MiniBlockLayout:
    return pb.MiniBlockLayout(
        rep_compression=_levels(message, "rep_compression", early),
        def_compression=_levels(message, "def_compression", early),
        value_compression=_optional(message, "value_compression", early),
        dictionary=_optional(message, "dictionary", early),
        layers=_layers(layers),
        repetition_index_depth=message.repetition_index_depth,
        num_items=message.num_items,
    )


def _item_layer(message: pre.EarlyMiniBlockLayout) -> int:
    stored = _levels(message, "def_compression", early=True) is not None
    return Layer.NULLABLE_ITEM if stored else Layer.ALL_VALID_ITEM


def _optional(
    message: pre.EarlyMiniBlockLayout | pre.LateMiniBlockLayout, name: str, early: bool
) -> pb.CompressiveEncoding | None:
    return to_stable(getattr(message, name), early) if message.HasField(name) else None  # type: ignore[arg-type]


def _levels(
    message: pre.EarlyMiniBlockLayout | pre.LateMiniBlockLayout, name: str, early: bool
) -> pb.CompressiveEncoding | None:
    """Return the encoding of levels, None if all are 0, which early pages mark with a constant."""
    encoding: pre.ArrayEncoding = getattr(message, name)
    if encoding.WhichOneof("array_encoding") != "constant":
        return _optional(message, name, early)
    if any(encoding.constant.value):
        raise UnsupportedError(f"levels that are all {encoding.constant.value.hex()}; not known from {WRITERS}")
    return None


# -- full-zip ----------------------------------------------------------------------------------------------------


def _parse_full_zip(data: bytes) -> PreLayout:
    if parse_message(pre.FullZipProbe, data).HasField("early_values"):
        return _early_full_zip(parse_message(pre.EarlyFullZipLayout, data))
    late = parse_message(pre.LateFullZipLayout, data)
    details = late.WhichOneof("details")
    stable = pb.FullZipLayout(
        bits_rep=late.bits_rep,
        bits_def=late.bits_def,
        bits_per_value=late.bits_per_value if details == "bits_per_value" else None,
        bits_per_offset=late.bits_per_offset if details == "bits_per_offset" else None,
        num_items=late.num_items,
        num_visible_items=late.num_visible_items,
        layers=_layers(late.layers),
    )
    if late.HasField("value_compression"):
        stable.value_compression.CopyFrom(to_stable(late.value_compression, _is_early(late.value_compression)))
    return _translated(pb.PageLayout(full_zip_layout=stable), list(late.layers))


def _is_early(values: pre.ArrayEncoding) -> bool:
    """Return whether values have the form of 0.23 to 0.25: full-zip pages have no bit packing, so 15 is `Variable`."""
    inner = values.fsst.binary if values.WhichOneof("array_encoding") == "fsst" else values
    return inner.WhichOneof("array_encoding") == "member15"


def _early_full_zip(message: pre.EarlyFullZipLayout) -> PreLayout:
    values = to_stable(message.value_compression, early=True)
    layers = list(message.layers)
    stable = pb.FullZipLayout(
        bits_rep=message.bits_rep,
        bits_def=message.bits_def,
        bits_per_value=_value_bits(values),
        value_compression=values,
        layers=_layers(layers or [Layer.NULLABLE_ITEM if message.bits_def else Layer.ALL_VALID_ITEM]),
    )
    return _translated(pb.PageLayout(full_zip_layout=stable), layers)


def _value_bits(values: pb.CompressiveEncoding) -> int:
    """Return the bits of a value, which early pages do not store."""
    dimension = 1
    if values.WhichOneof("compression") == "fixed_size_list":
        dimension, values = values.fixed_size_list.items_per_value, values.fixed_size_list.values
    bits = dimension * values.flat.bits_per_value
    if values.WhichOneof("compression") != "flat" or bits >= 2**32:
        raise CorruptFileError(f"full-zip values with encoding {values.WhichOneof('compression')} of {bits} bits")
    return bits
