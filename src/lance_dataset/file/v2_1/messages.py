"""Page layouts of 2.1 and 2.2 files: parsing of messages, with one check, and conversion back to messages."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from lance_dataset._proto import encodings21_pb2 as pb
from lance_dataset.errors import CorruptFileError
from lance_dataset.file.page_encodings import cached_by_encoding
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.encodings.registry import parse_encoding, parse_optional
from lance_dataset.file.structural.layout import (
    BlobLayout,
    ConstantLayout,
    FullZipLayout,
    Layer,
    Layout,
    MiniBlockLayout,
    list_depth,
)

__all__ = ["PAGE_LAYOUT", "parse_page_layout", "to_page_layout"]

#: Protobuf name of the page descriptor of 2.1 and 2.2 files.
PAGE_LAYOUT = "lance.encodings21.PageLayout"
_MAX_LAYERS = 1000
_MAX_ITEMS = 2**40


@cached_by_encoding(pb.PageLayout)
def parse_page_layout(encoding: bytes) -> Layout:
    """Parse a serialized `PageLayout`; equal pages share one value.

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
    return _parse(message, nested=False)


def _parse(message: pb.PageLayout, nested: bool) -> Layout:
    kind = message.WhichOneof("layout")
    if kind == "mini_block_layout":
        return _parse_mini_block(message.mini_block_layout)
    if kind == "full_zip_layout":
        return _parse_full_zip(message.full_zip_layout)
    if kind == "constant_layout":
        return _parse_constant(message.constant_layout)
    if kind == "blob_layout" and not nested:
        return _parse_blob(message.blob_layout)
    raise CorruptFileError("page layout is empty, nested wrongly, or of a kind this file version does not have")


def _parse_layers(values: Any) -> tuple[Layer, ...]:
    if not 0 < len(values) <= _MAX_LAYERS:
        raise CorruptFileError(f"page layout with {len(values)} layers")
    try:
        return tuple(Layer(value) for value in values)
    except ValueError as error:
        raise CorruptFileError(f"page layout with an unknown layer ({error})") from error


def _check_items(count: int) -> int:
    if count > _MAX_ITEMS:
        raise CorruptFileError(f"page layout with {count} items")
    return count


def _parse_mini_block(message: pb.MiniBlockLayout) -> MiniBlockLayout:
    if message.repetition_index_depth > 1:
        raise CorruptFileError(f"repetition index of depth {message.repetition_index_depth}; no release writes it")
    if not message.HasField("value_compression"):
        raise CorruptFileError("mini-block layout without a value encoding")
    layout = MiniBlockLayout(
        values=parse_encoding(message.value_compression),
        layers=_parse_layers(message.layers),
        num_items=_check_items(message.num_items),
        num_buffers=message.num_buffers,
        rep=parse_optional(message, "rep_compression"),
        definition=parse_optional(message, "def_compression"),
        dictionary=parse_optional(message, "dictionary"),
        dictionary_size=message.num_dictionary_items,
        indexed=message.repetition_index_depth > 0,
        large=message.has_large_chunk,
    )
    lists = list_depth(layout.layers)
    if (layout.rep is None) != (lists == 0) or layout.indexed != (lists > 0):
        raise CorruptFileError(f"{lists} list layers do not fit the repetition levels and index of the layout")
    return layout


def _parse_full_zip(message: pb.FullZipLayout) -> FullZipLayout:
    details = message.WhichOneof("details")
    if details is None:
        raise CorruptFileError("full-zip layout with neither a width nor a length of its values")
    if not message.HasField("value_compression"):
        raise CorruptFileError("full-zip layout without a value encoding")
    if message.bits_rep > 16 or message.bits_def > 16:
        raise CorruptFileError(f"control words of {message.bits_rep} + {message.bits_def} bits")
    bits = message.bits_per_value if details == "bits_per_value" else None
    length_bits = message.bits_per_offset if details == "bits_per_offset" else None
    if (bits is not None and bits % 8) or (length_bits is not None and length_bits not in (32, 64)):
        raise CorruptFileError(f"full-zip values of {bits} bits, lengths of {length_bits} bits")
    return FullZipLayout(
        values=parse_encoding(message.value_compression),
        layers=_parse_layers(message.layers),
        num_items=_check_items(message.num_items),
        num_visible_items=_check_items(message.num_visible_items),
        rep_bits=message.bits_rep,
        def_bits=message.bits_def,
        bits=bits,
        length_bits=length_bits,
    )


def _parse_constant(message: pb.ConstantLayout) -> ConstantLayout:
    return ConstantLayout(
        layers=_parse_layers(message.layers),
        inline_value=message.inline_value if message.HasField("inline_value") else None,
        rep=parse_optional(message, "rep_compression"),
        definition=parse_optional(message, "def_compression"),
        num_rep_values=_check_items(message.num_rep_values),
        num_def_values=_check_items(message.num_def_values),
    )


def _parse_blob(message: pb.BlobLayout) -> BlobLayout:
    inner = _parse(message.inner_layout, nested=True)
    if isinstance(inner, BlobLayout):
        raise CorruptFileError("blob layout inside a blob layout")
    return BlobLayout(inner, _parse_layers(message.layers))


# -- to messages -------------------------------------------------------------------------------------------------


def to_page_layout(layout: Layout) -> pb.PageLayout:
    """Return the message of files of version 2.1 and 2.2 for a layout."""
    if isinstance(layout, MiniBlockLayout):
        return pb.PageLayout(mini_block_layout=_mini_block_message(layout))
    if isinstance(layout, FullZipLayout):
        return pb.PageLayout(full_zip_layout=_full_zip_message(layout))
    if isinstance(layout, ConstantLayout):
        return pb.PageLayout(constant_layout=_constant_message(layout))
    inner = to_page_layout(layout.inner)
    return pb.PageLayout(blob_layout=pb.BlobLayout(inner_layout=inner, layers=_numbers(layout.layers)))


def _numbers(layers: tuple[Layer, ...]) -> list[Any]:
    return [int(layer) for layer in layers]


def _optional(encoding: Encoding | None) -> pb.CompressiveEncoding | None:
    return None if encoding is None else encoding.to_message(pb)


def _mini_block_message(layout: MiniBlockLayout) -> pb.MiniBlockLayout:
    return pb.MiniBlockLayout(
        rep_compression=_optional(layout.rep),
        def_compression=_optional(layout.definition),
        value_compression=layout.values.to_message(pb),
        dictionary=_optional(layout.dictionary),
        num_dictionary_items=layout.dictionary_size,
        layers=_numbers(layout.layers),
        num_buffers=layout.num_buffers,
        repetition_index_depth=int(layout.indexed),
        num_items=layout.num_items,
        has_large_chunk=layout.large,
    )


def _full_zip_message(layout: FullZipLayout) -> pb.FullZipLayout:
    return pb.FullZipLayout(
        bits_rep=layout.rep_bits,
        bits_def=layout.def_bits,
        bits_per_value=layout.bits,
        bits_per_offset=layout.length_bits,
        num_items=layout.num_items,
        num_visible_items=layout.num_visible_items,
        value_compression=layout.values.to_message(pb),
        layers=_numbers(layout.layers),
    )


def _constant_message(layout: ConstantLayout) -> pb.ConstantLayout:
    return pb.ConstantLayout(
        layers=_numbers(layout.layers),
        inline_value=layout.inline_value,
        rep_compression=_optional(layout.rep),
        def_compression=_optional(layout.definition),
        num_rep_values=layout.num_rep_values,
        num_def_values=layout.num_def_values,
    )
