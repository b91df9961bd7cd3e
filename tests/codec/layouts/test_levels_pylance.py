"""Tests of levels, kinds, chunk cuts and repetition indices of pylance's files, compared with those built here."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.pages.lance_page import Page, pages_of
from support.pages.level_model import Step, arrow_layers, leaf_paths, random_array

from lancecodec import bitpacking, levels, rle
from lancecodec.level_builder import Levels, build
from lancecodec.level_unraveler import LevelUnraveler

INT = pa.int32()


def fields(*types: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field(f"c{i}", kind) for i, kind in enumerate(types)])


SHAPES: dict[str, pa.DataType] = {
    "item": INT,
    "struct": fields(INT, fields(INT)),
    "list": pa.list_(INT),
    "large_list": pa.large_list(INT),
    "list_list": pa.list_(pa.list_(INT)),
    "list_list_list": pa.list_(pa.large_list(pa.list_(INT))),
    "list_struct": pa.list_(fields(INT, INT)),
    "struct_list": fields(pa.list_(INT), INT),
    "list_struct_list": pa.list_(fields(pa.list_(INT))),
    "struct_list_struct_list": fields(pa.list_(fields(pa.list_(fields(INT))))),
}


@dataclass(frozen=True)
class Stored:
    """The layers of a page as pylance stored them."""

    kinds: list[int]
    repetition: bytes | None
    definition: bytes | None
    values: list[int]  # for each chunk
    items: list[int]
    index: bytes | None


def decode_levels(codec: dict[str, Any], data: bytes, count: int) -> bytes:
    out = np.empty(count, np.uint16)
    if "flat" in codec:
        return data
    if "inline_bitpacking" in codec:
        bitpacking.inline_block_decode(data, 16, count, out)
    elif "out_of_line_bitpacking" in codec:
        width = codec["out_of_line_bitpacking"]["values"]["flat"]["bits_per_value"]
        bitpacking.out_of_line_decode(data, 16, width, count, out)
    else:
        assert "rle" in codec
        rle.decode_block(data, count, 16, out)
    return out.tobytes()


def read_mini_block(layout: dict[str, Any], buffers: list[bytes]) -> Stored:
    codecs = [layout.get("rep_compression"), layout.get("def_compression")]
    wide = "I" if layout.get("has_large_chunk") else "H"
    words = np.frombuffer(buffers[0], f"<u{struct.calcsize(wide)}").tolist()
    streams, values, items, start, left = [b"", b""], [], [], 0, layout["num_items"]
    sizes = struct.Struct(f"<H{'H' * sum(codec is not None for codec in codecs)}{wide * layout['num_buffers']}")
    for i, word in enumerate(words):
        count, *lengths = sizes.unpack_from(buffers[1], start)
        at = start + -(-sizes.size // 8) * 8
        for which, codec in enumerate(codecs):
            if codec is not None:
                size = lengths.pop(0)
                streams[which] += decode_levels(codec, buffers[1][at : at + size], count)
                at += -(-size // 8) * 8
        values.append(left if i == len(words) - 1 else 1 << (word & 15))
        items.append(count)
        left -= values[-1]
        start += ((word >> 4) + 1) * 8
    rep, definition = (stream if codec is not None else None for stream, codec in zip(streams, codecs, strict=True))
    return Stored(layout["layers"], rep, definition, values, items, buffers[-1] if rep is not None else None)


def read_constant(layout: dict[str, Any], buffers: list[bytes], rows: int) -> Stored:
    streams: list[bytes | None] = []
    assert len(buffers) in (0, 2, 3)
    for name, buffer in zip(["rep", "def"], buffers[-2:] if len(buffers) > 1 else [b"", b""], strict=True):
        codec = layout.get(f"{name}_compression")
        stored = decode_levels(codec, buffer, layout[f"num_{name}_values"]) if codec else buffer
        streams.append(stored or None)
    if not buffers and "inline_value" not in layout:
        streams[1] = b"\x01\x00" * rows
    return Stored(layout["layers"], streams[0], streams[1], [], [], None)


def read_page(page: Page) -> Stored:
    ((kind, layout),) = page.layout.items()
    if kind == "constant_layout":
        return read_constant(layout, page.buffers, page.length)
    assert kind == "mini_block_layout"
    return read_mini_block(layout, page.buffers)


def check_page(built: Levels, stored: Stored, path: list[Step]) -> None:
    assert list(built.kinds) == stored.kinds
    assert built.repetition == stored.repetition
    assert built.definition == stored.definition
    if stored.values:
        ends = np.zeros(len(stored.values), np.int64)
        counts = np.array(stored.values)
        most = levels.cut(built.definition, built.num_items, built.max_visible_definition, counts, ends)
        assert sum(stored.values) == built.num_visible_items
        if built.repetition or built.definition:
            assert np.diff([0, *ends]).tolist() == stored.items
            assert most == max(stored.items)
    if stored.index is not None:
        out = bytearray(16 * len(ends))
        assert built.repetition is not None
        levels.repetition_index(built.repetition, built.max_repetition, ends, out)
        assert bytes(out) == stored.index
    dimensions = [step.dimension for step in reversed(path)]
    back = LevelUnraveler(stored.repetition, stored.definition, built.num_items, stored.kinds, dimensions)
    assert back.lengths[0] == built.num_visible_items
    assert len(back.lengths) == len(path)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("shape", SHAPES)
def test_pages_of_pylance(shape: str, version: str) -> None:
    kind = SHAPES[shape]
    for seed, rows in enumerate([1, 7, 60, 700, 9000]):
        array = random_array(np.random.default_rng(seed), kind, rows)
        plain = array.take(pa.array(range(rows)))  # pylance does not accept everything that Arrow allows
        for column, path in enumerate(leaf_paths(kind)):
            start = 0
            for page in pages_of(plain, version, column=column):
                part = array.slice(start, page.length)
                check_page(build(page.length, arrow_layers(part, path)[0]), read_page(page), path)
                start += page.length
            assert start == rows


@pytest.mark.parametrize("kind", [pa.list_(fields(INT), 2), fields(pa.list_(fields(INT, fields(INT)), 3))])
def test_structural_fixed_size_lists_of_pylance(kind: pa.DataType) -> None:
    """Rows of pages of structural fixed-size lists are counted in items of the fixed-size lists."""
    for seed, rows in enumerate([1, 7, 60, 700, 700]):
        array = random_array(np.random.default_rng(seed), kind, rows).take(pa.array(range(rows)))
        for column, path in enumerate(leaf_paths(kind)):
            dimension = sum(step.dimension for step in path)
            [page] = pages_of(array, "2.2", column=column)
            assert page.length == rows * dimension
            check_page(build(rows, arrow_layers(array, path)[0]), read_page(page), path)
