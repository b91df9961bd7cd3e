"""Pages of 2.1 rewritten as pylance 0.19 to 0.25 wrote them: the inverse of the reader of such pages."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from google.protobuf import any_pb2

from lance_dataset._proto import encodings21_pb2 as pb
from lance_dataset._proto import encodings21_pre_pb2 as pre
from lancecodec import bitpacking
from support.files.file_parts import FileParts, take_apart_file

PRE_NAME = "lance.encodings.PageLayout"
_UNIT = 8


def encoding(stable: pb.CompressiveEncoding) -> pre.ArrayEncoding:
    """Return an encoding of values as in 0.22."""
    kind = stable.WhichOneof("compression")
    if kind == "flat":
        return pre.ArrayEncoding(flat=pre.Flat(bits_per_value=stable.flat.bits_per_value))
    if kind == "inline_bitpacking":
        bits = stable.inline_bitpacking.uncompressed_bits_per_value
        return pre.ArrayEncoding(inline_bitpacking=pre.InlineBitpacking(uncompressed_bits_per_value=bits))
    if kind == "variable":
        return pre.ArrayEncoding(member15=b"")
    if kind == "fsst":
        fsst = pre.Fsst(binary=encoding(stable.fsst.values), symbol_table=stable.fsst.symbol_table)
        return pre.ArrayEncoding(member16=fsst.SerializeToString())
    if kind == "packed_struct":
        packed = stable.packed_struct
        rows = pre.PackedStruct(flat=encoding(packed.values), bits_per_value=packed.bits_per_value)
        return pre.ArrayEncoding(member18=rows.SerializeToString())
    raise NotImplementedError(kind)


def levels(stable: pb.MiniBlockLayout, name: str, count: int) -> pre.ArrayEncoding:
    """Return levels as in 0.22; a constant if there are none."""
    if stable.HasField(name):  # type: ignore[arg-type]
        return pre.ArrayEncoding(flat=pre.Flat(bits_per_value=16))
    return pre.ArrayEncoding(constant=pre.Constant(value=b"\0\0", num_values=count))


def mini_block(stable: pb.MiniBlockLayout, rows: int, *, with_layers: bool = True) -> pre.PageLayout:
    """Return a mini-block layout as in 0.22, or as in 0.20, without layers."""
    early = pre.EarlyMiniBlockLayout(
        rep_compression=levels(stable, "rep_compression", rows),
        def_compression=levels(stable, "def_compression", rows),
        value_compression=encoding(stable.value_compression),
    )
    if stable.HasField("dictionary"):
        early.dictionary.CopyFrom(encoding(stable.dictionary))
        if early.dictionary.WhichOneof("array_encoding") == "member15":
            early.dictionary.member17 = b""
    if with_layers:
        early.layers.extend(stable.layers)
        early.repetition_index_depth = stable.repetition_index_depth
        early.num_items = stable.num_items
    return pre.PageLayout(mini_block_layout=early.SerializeToString())


def plain_levels(stable: pb.CompressiveEncoding, data: bytes, count: int) -> bytes:
    """Unpack levels to 16 bits each."""
    out = bytearray(2 * count)
    kind = stable.WhichOneof("compression")
    if kind == "flat":
        return data
    if kind == "inline_bitpacking":
        bitpacking.inline_block_decode(data, 16, count, out)
    else:
        assert kind == "out_of_line_bitpacking"
        width = stable.out_of_line_bitpacking.values.flat.bits_per_value
        bitpacking.out_of_line_decode(data, 16, width, count, out)
    return bytes(out)


def chunks(stable: pb.MiniBlockLayout, words: bytes, data: bytes) -> tuple[bytes, bytes]:
    """Return chunk words and chunks with early headers; values of 1 bit are all in the last chunk."""
    names = ("rep_compression", "def_compression")
    streams = [stable.HasField(name) for name in names]  # type: ignore[arg-type]
    out, sizes, held, start = [], [], b"", 0
    logs = np.frombuffer(words, "<u2") & 15
    lengths = (np.frombuffer(words, "<u2").astype(np.int64) // 16 + 1) * _UNIT
    one_bit = stable.value_compression.flat.bits_per_value == 1
    for number, length in enumerate(lengths.tolist()):
        chunk, start = data[start : start + length], start + length
        stored = struct.unpack_from(f"<{1 + sum(streams) + 1}H", chunk)
        position, parts = -(-2 * len(stored) // _UNIT) * _UNIT, []
        for size in stored[1:]:
            parts.append(chunk[position : position + size])
            position += -(-size // _UNIT) * _UNIT
        kept = [
            plain_levels(getattr(stable, name), parts.pop(0), stored[0]) if present else b""
            for name, present in zip(names, streams, strict=True)
        ]
        (values,) = parts
        if one_bit:
            held += values
            values = held if number == len(lengths) - 1 else b""
        new = struct.pack("<HHH", len(kept[0]), len(kept[1]), len(values)) + kept[0] + kept[1]
        new += bytes(-len(new) % _UNIT) + values
        new += bytes(-len(new) % _UNIT)
        out.append(new)
        sizes.append(len(new))
    early_words = (np.array(sizes) // _UNIT - 1) << 4 | logs
    return early_words.astype("<u2").tobytes(), b"".join(out)


def make_early(path: Path, *, with_layers: bool = True) -> FileParts:
    """Take a 2.1 file of mini-block pages apart and rewrite all of its pages."""
    parts = take_apart_file(path)
    for index, column in enumerate(parts.columns):
        for number, page in enumerate(column.pages):
            layout = pb.PageLayout.FromString(any_pb2.Any.FromString(page.encoding.direct.encoding).value)
            stable = layout.mini_block_layout
            assert layout.WhichOneof("layout") == "mini_block_layout"
            assert not stable.has_large_chunk
            ranges = list(zip(page.buffer_offsets, page.buffer_sizes, strict=True))
            buffers = [parts.data[position : position + size] for position, size in ranges]
            words, data = chunks(stable, *buffers[:2])
            parts.replace_buffer(index, 0, words, number)
            parts.replace_buffer(index, 1, data, number)
            if stable.dictionary.WhichOneof("compression") == "variable":
                header = struct.pack("<I", stable.num_dictionary_items)
                parts.replace_buffer(index, 2, header + buffers[2][4:], number)
            parts.set_encoding(index, mini_block(stable, page.length, with_layers=with_layers), number, PRE_NAME)
    return parts
