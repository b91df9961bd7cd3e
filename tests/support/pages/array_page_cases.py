"""Pages of 2.0 made by hand: every encoding of the format, with the encoded values."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import lz4.block
import pyarrow as pa
import zstandard

from lance_dataset._proto import encodings_pb2 as pb
from lancecodec import bitpacking, fsst
from support.pages import array_page as ap
from support.pages.array_page import TreeColumn, TreePage, write_columns

INTS = struct.pack("<3i", 1, 2, 3)
ZSTD = zstandard.ZstdCompressor()
PAIR = pa.struct([("a", pa.int8()), ("b", pa.int32())])
ROWS = bytes.fromhex("01020000000304000000")
BLOB = {"lance-encoding:blob": "true"}


def u64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def table(*symbols: bytes) -> bytes:
    out = bytearray(fsst.TABLE_SIZE)
    fsst.write_table(symbols, out)
    return bytes(out)


def blocks(values: Sequence[int], bits: int, width: int) -> bytes:
    out = bytearray(bitpacking.packed_size(len(values), width))
    content = b"".join(value.to_bytes(bits // 8, "little") for value in values)
    bitpacking.pack(content, bits, width, out)
    return bytes(out)


def golden(encoding: str) -> pb.ArrayEncoding:
    return pb.ArrayEncoding.FromString(bytes.fromhex(encoding))


@dataclass(frozen=True)
class Case:
    """A file of one top-level field; `reference` is True if pylance reads it correctly."""

    kind: pa.DataType
    columns: list[TreeColumn]
    expected: list[object]
    reference: bool = True
    metadata: dict[str, str] | None = None
    globals_: tuple[bytes, ...] = ()
    outside: tuple[bytes, ...] = ()

    @property
    def field(self) -> pa.Field:
        return pa.field("a", self.kind, metadata=self.metadata)

    def write(self, path: Path) -> Path:
        schema = pa.schema([self.field])
        return write_columns(path, schema, self.columns, len(self.expected), self.globals_, self.outside)


def page(
    kind: pa.DataType, encoding: pb.ArrayEncoding, buffers: Sequence[bytes], expected: list[object], *, ref: bool = True
) -> Case:
    return Case(kind, [TreeColumn([TreePage(encoding, buffers, len(expected))])], expected, ref)


def pages(kind: pa.DataType, *stored: TreePage, expected: list[object]) -> Case:
    return Case(kind, [TreeColumn(stored)], expected)


ENDS = u64(1, 5, 3)  # "x", null, "yz"
TEXTS = ["x", None, "yz"]
TEXT = ap.binary(ap.no_nulls(ap.flat(64)), ap.flat(8, 1), 4)
ITEMS = ap.binary(ap.flat(64, 1), ap.flat(8, 2), 100)
CODES = [u64(2, 102, 4), b"\x00\x01\xff\x78"]
CODED = ap.binary(ap.no_nulls(ap.flat(64)), ap.flat(8, 1), 100)
WORDS = table(b"hello", b"world")
FLAT32 = ap.no_nulls(ap.flat(32))
PACKED = ap.packed_struct([ap.no_nulls(ap.flat(8)), ap.no_nulls(ap.flat(32))])
PAIRS: list[object] = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
LIST = ap.list_of(ap.no_nulls(ap.flat(64)), 4, 3)
LISTS = [[1, 2], None, [3]]
LIST_ITEMS = TreeColumn([TreePage(FLAT32, [INTS], 3)])
EMPTY_LIST = ap.list_of(ap.all_nulls(), 0, 0)
IN_DICT = pa.dictionary(pa.int8(), pa.string())
VECTOR = pa.list_(pa.float32(), 2)
VECTOR_BYTES = bytes.fromhex("0000803f0000004000000000000000000000404000000000")
VECTOR_TREE = "122a12280a060a0408011200121e1a1c08021218121612140a080a0608011202080112080a06082012020802"
DICT_TREE = "3a300a0c120a0a080a060a0408081200121e321c0a0e120c0a0a0a080a0608401202080112080a0608081202080218041802"

GOLDEN = {
    "int32": page(pa.int32(), golden("120a0a080a060a0408201200"), [INTS], [1, 2, 3]),
    "int32 with nulls": page(
        pa.int32(), golden("121412120a060a040801120012080a06082012020801"), [b"\x05", INTS], [1, None, 3]
    ),
    "all null": page(pa.int32(), golden("12021a00"), [], [None, None]),
    "vectors": page(VECTOR, golden(VECTOR_TREE), [b"\5", b"\x13", VECTOR_BYTES], [[1, 2], None, [3, None]]),
    "boolean lists": page(
        pa.list_(pa.bool_(), 3),
        ap.no_nulls(ap.fixed_size_list(3, ap.no_nulls(ap.flat(1)))),
        [b"\xe5\x01"],
        [[True, False, True], [False, False, True], [True, True, True]],
    ),
    "lists": Case(
        pa.list_(pa.int64()),
        [
            TreeColumn([TreePage(golden("22120a0c120a0a080a060a040840120010031802"), [u64(2, 5, 2)], 3)]),
            TreeColumn([TreePage(ap.no_nulls(ap.flat(64)), [u64(1, 2)], 2)]),
        ],
        [[1, 2], None, []],
    ),
    "strings": page(
        pa.string(), golden("321a0a0c120a0a080a060a040840120012080a060808120208011804"), [ENDS, b"xyz"], TEXTS
    ),
    "string dictionary": page(
        pa.string(), golden(DICT_TREE), [b"\1\0\2\2\1", u64(1, 3), b"abb"], ["a", None, "bb", "bb", "a"]
    ),
    "dictionary column": page(
        pa.dictionary(pa.int32(), pa.string()),
        ap.dictionary(ap.no_nulls(ap.flat(32)), ap.binary(ap.no_nulls(ap.flat(64, 1)), ap.flat(8, 2), 4), 3),
        [struct.pack("<4i", 0, 2, 1, 0), u64(1, 3, 7), b"abb"],
        ["a", None, "bb", "a"],
    ),
    "packed struct": Case(
        PAIR,
        [TreeColumn([TreePage(golden("4a1e0a0c120a0a080a060a04080812000a0c120a0a080a060a04082012001200"), [ROWS], 2)])],
        PAIRS,
        metadata={"packed": "true"},
    ),
    "bit packed": page(pa.uint8(), ap.bitpacked(5, 8), [bytes.fromhex("e11f0001")], [1, 31, 7, 0, 16]),
    "bit packed signed": page(
        pa.int8(), ap.bitpacked(5, 8, signed=True), [bytes.fromhex("e11f0001")], [1, -1, 7, 0, -16]
    ),
    "blobs": Case(
        pa.large_binary(),
        [
            TreeColumn(
                [
                    TreePage(
                        golden("4a1e0a0c120a0a080a060a04084012000a0c120a0a080a060a04084012001200"),
                        [u64(0, 5, 1, 0, 0, 0)],
                        3,
                    )
                ],
                encoding=pb.ColumnEncoding.FromString(bytes.fromhex("1a040a020a00")),
            )
        ],
        [b"hello", None, b""],
        metadata=BLOB,
        outside=(b"hello",),
    ),
    "fsst": page(pa.string(), ap.fsst(CODED, WORDS), CODES, ["helloworld", None, "x"]),
    "zstd": page(
        pa.string(),
        ap.binary(ap.no_nulls(ap.flat(64)), ap.flat(8, 1, "zstd"), 13),
        [u64(4, 8, 12), bytes.fromhex("0c0000000000000028b52ffd200c45000010616101001bc002")],
        ["aaaa"] * 3,
    ),
    "lz4": page(
        pa.string(),
        ap.binary(ap.no_nulls(ap.flat(64)), ap.flat(8, 1, "lz4"), 13),
        [u64(4, 8, 12), bytes.fromhex("0c000000c0616161616161616161616161")],
        ["aaaa"] * 3,
    ),
    "zstd of nothing": page(
        pa.string(),
        ap.binary(ap.no_nulls(ap.flat(64)), ap.flat(8, 1, "zstd"), 1),
        [u64(0, 1), bytes.fromhex("000000000000000028b52ffd2000010000")],
        ["", None],
    ),
}

FIXED = {
    "bare": page(pa.int32(), ap.flat(32), [INTS], [1, 2, 3]),
    "validity says no nulls": page(
        pa.int32(), ap.some_nulls(ap.no_nulls(ap.flat(1, 1)), ap.flat(32)), [INTS, b"\5"], [1, None, 3]
    ),
    "nulls twice": page(
        pa.int32(),
        ap.some_nulls(ap.flat(1), ap.some_nulls(ap.flat(1, 1), ap.flat(32, 2))),
        [b"\x05", b"\x03", INTS],
        [1, None, None],
        ref=False,  # the reference believes the outer ones
    ),
    "bitmaps are not compressed": page(pa.bool_(), ap.flat(1, 0, "zstd"), [b"\x05"], [True, False, True]),
    "bare zstd": page(pa.int32(), ap.flat(32, 0, "zstd"), [ZSTD.compress(INTS)], [1, 2, 3]),
    "zstd with length": page(pa.int32(), ap.flat(32, 0, "zstd"), [u64(12) + ZSTD.compress(INTS)], [1, 2, 3]),
    "lz4 with nulls": page(
        pa.float32(),
        ap.some_nulls(ap.flat(1, 1), ap.flat(32, 0, "lz4")),
        [lz4.block.compress(struct.pack("<3f", 1, 2, 3)), b"\5"],
        [1.0, None, 3.0],
    ),
    "scheme none": page(pa.int32(), ap.flat(32, 0, "none"), [INTS], [1, 2, 3]),
    "compressed lists": page(
        pa.list_(pa.int32(), 1), ap.fixed_size_list(1, ap.flat(32, 0, "zstd")), [ZSTD.compress(INTS)], [[1], [2], [3]]
    ),
    "null items": page(VECTOR, ap.fixed_size_list(2, ap.all_nulls()), [], [[None, None]] * 3),
    "bit packed times": page(
        pa.duration("us"), ap.bitpacked(5, 64, signed=True), [bytes.fromhex("e11f0001")], [1, -1, 7, 0, -16]
    ),
    "bit packed whole bytes": page(pa.int8(), ap.bitpacked(8, 8), [b"\1\2\3"], [1, 2, 3]),
    "blocks": page(pa.uint16(), ap.bitpacked_blocks(10, 16), [blocks([5, 1023, 7], 16, 10)], [5, 1023, 7]),
    "blocks with nulls": page(
        pa.int16(),
        ap.some_nulls(ap.flat(1, 1), ap.bitpacked_blocks(10, 16)),
        [blocks([5, 1023, 7], 16, 10), b"\5"],
        [5, None, 7],
    ),
    "blocks of nothing": page(pa.uint16(), ap.bitpacked_blocks(0, 16), [], [0, 0, 0], ref=False),
    "lists of blocks": page(
        pa.list_(pa.uint16(), 1), ap.fixed_size_list(1, ap.bitpacked_blocks(3, 16)), [blocks([5, 7], 16, 3)], [[5], [7]]
    ),
    "column buffer": Case(
        pa.int32(), [TreeColumn([TreePage(ap.flat(32, ("column", 1)), [], 3)], [b"", INTS])], [1, 2, 3]
    ),
    "global buffer": Case(
        pa.int32(), [TreeColumn([TreePage(ap.flat(32, ("file", 1)), [], 3)])], [1, 2, 3], False, None, (INTS,)
    ),
    "zone index": Case(
        pa.int32(),
        [
            TreeColumn(
                [TreePage(FLAT32, [INTS], 3)],
                encoding=pb.ColumnEncoding(zone_index=pb.ZoneIndex(rows_per_zone=2, inner=ap.VALUES)),
            )
        ],
        [1, 2, 3],
        reference=False,  # the reference refuses it
    ),
    "empty pages": pages(
        pa.int32(),
        TreePage(FLAT32, [], 0),
        TreePage(FLAT32, [INTS], 3),
        TreePage(ap.all_nulls(), [], 0),
        TreePage(ap.all_nulls(), [], 2),
        TreePage(ap.bitpacked(5, 32), [bytes.fromhex("e11f0001")], 5),
        TreePage(FLAT32, [b""], 0),
        expected=[1, 2, 3, None, None, 1, 31, 7, 0, 16],
    ),
}

TEXT_CASES = {
    "nulls around": page(
        pa.string(), ap.some_nulls(ap.flat(1, 2), TEXT), [ENDS, b"xyz", b"\3"], ["x", None, None], ref=False
    ),
    "bytes said to be valid": page(
        pa.string(), ap.binary(ap.flat(64), ap.no_nulls(ap.flat(8, 1)), 4), [ENDS, b"xyz"], TEXTS
    ),
    "no bytes": page(
        pa.string(), ap.binary(ap.no_nulls(ap.flat(64)), ap.all_nulls(), 1), [u64(1, 1, 0)], [None, None, ""], ref=False
    ),
    "all null": page(pa.large_binary(), ap.all_nulls(), [], [None] * 3),
    "packed ends": page(
        pa.string(), ap.binary(ap.bitpacked(4, 64), ap.flat(8, 1), 4), [bytes([0x51, 0x03]), b"xyz"], TEXTS
    ),
    "ends in blocks": page(
        pa.string(), ap.binary(ap.bitpacked_blocks(3, 64), ap.flat(8, 1), 4), [blocks([1, 5, 3], 64, 3), b"xyz"], TEXTS
    ),
    "everything compressed": page(
        pa.string(),
        ap.binary(ap.flat(64, 0, "zstd"), ap.flat(8, 1, "lz4"), 4),
        [u64(24) + ZSTD.compress(ENDS), lz4.block.compress(b"xyz")],
        TEXTS,
    ),
    "of one width": page(pa.string(), ap.fixed_size_binary(ap.flat(8), 2), [b"aabbcc"], ["aa", "bb", "cc"]),
    "of one width, in one": page(
        pa.string(), ap.fixed_size_binary(ap.flat(16), 2), [b"aabbcc"], ["aa", "bb", "cc"], ref=False
    ),
    "of one width, valid": page(
        pa.binary(), ap.fixed_size_binary(ap.no_nulls(ap.flat(8)), 2), [b"aabbcc"], [b"aa", b"bb", b"cc"]
    ),
    "of one width, nulls": page(
        pa.string(),
        ap.some_nulls(ap.flat(1, 1), ap.fixed_size_binary(ap.flat(8), 2)),
        [b"aabbcc", b"\5"],
        ["aa", None, "cc"],
    ),
    "of one width, compressed": page(
        pa.large_string(),
        ap.fixed_size_binary(ap.flat(8, 0, "zstd"), 2),
        [ZSTD.compress(b"aabbcc")],
        ["aa", "bb", "cc"],
    ),
    "of one width, bit packed": page(
        pa.binary(), ap.fixed_size_binary(ap.bitpacked(3, 8), 2), [bytes([1 | 2 << 3, 0])], [b"\1\2", b"\0\0"]
    ),
    "of no width": page(pa.string(), ap.fixed_size_binary(ap.flat(8), 0), [b""], ["", "", ""]),
    "fsst large": page(pa.large_string(), ap.fsst(CODED, WORDS), CODES, ["helloworld", None, "x"], ref=False),
    "fsst binary": page(pa.binary(), ap.fsst(CODED, WORDS), CODES, [b"helloworld", None, b"x"]),
    "fsst of one width": page(
        pa.string(), ap.fsst(ap.fixed_size_binary(ap.flat(8), 1), WORDS), [b"\0\1\0"], ["hello", "world", "hello"]
    ),
    "fsst with nulls around": page(
        pa.string(), ap.some_nulls(ap.flat(1, 2), ap.fsst(CODED, WORDS)), [*CODES, b"\6"], [None, None, "x"], ref=False
    ),
    "fsst not enabled": page(
        pa.string(), ap.fsst(CODED, bytes(4) + b"TSSF" + bytes(2304)), [u64(2, 102, 4), b"abcd"], ["ab", None, "cd"]
    ),
    "fsst compressed": page(
        pa.string(),
        ap.fsst(ap.binary(ap.flat(64), ap.flat(8, 1, "zstd"), 100), WORDS),
        [CODES[0], ZSTD.compress(CODES[1])],
        ["helloworld", None, "x"],
    ),
    "mixed pages": pages(
        pa.string(),
        TreePage(TEXT, [ENDS, b"xyz"], 3),
        TreePage(ap.all_nulls(), [], 2),
        TreePage(ap.fsst(CODED, WORDS), CODES, 3),
        TreePage(ap.dictionary(ap.flat(8), ITEMS, 2), [b"\1\0\2", u64(1, 3), b"abb"], 3),
        TreePage(ap.fixed_size_binary(ap.flat(8), 2), [b"aabb"], 2),
        expected=[*TEXTS, None, None, "helloworld", None, "x", "a", None, "bb", "aa", "bb"],
    ),
    "as lists": Case(
        pa.string(),
        [TreeColumn([TreePage(LIST, [u64(2, 6, 3)], 3)]), TreeColumn([TreePage(ap.flat(8), [b"xyz"], 3)])],
        ["xy", None, "z"],
    ),
    "large as lists": Case(
        pa.large_binary(),
        [
            TreeColumn([TreePage(LIST, [u64(2, 6, 3)], 3), TreePage(ap.list_of(ap.flat(64), 9, 2), [u64(0, 2)], 2)]),
            TreeColumn([TreePage(ap.flat(8), [b"xyz"], 3), TreePage(ap.flat(8), [b"uv"], 2)]),
        ],
        [b"xy", None, b"z", b"", b"uv"],
    ),
}

DICTIONARIES = {
    "null index": page(
        pa.string(),
        ap.dictionary(ap.some_nulls(ap.flat(1, 3), ap.flat(8)), ITEMS, 2),
        [b"\1\1\2", u64(1, 3), b"abb", b"\5"],
        ["a", None, "bb"],
    ),
    "null item": page(
        pa.string(), ap.dictionary(ap.flat(8), ITEMS, 2), [b"\1\0\2", u64(1, 101), b"a"], ["a", None, None]
    ),
    "null items": page(pa.string(), ap.dictionary(ap.flat(8), ap.all_nulls(), 2), [b"\1\0\2"], [None] * 3),
    "wrapped": page(
        pa.string(), ap.no_nulls(ap.dictionary(ap.flat(8), ITEMS, 2)), [b"\1\0\2", u64(1, 3), b"abb"], ["a", None, "bb"]
    ),
    "nulls around": page(
        pa.string(),
        ap.some_nulls(ap.flat(1, 3), ap.dictionary(ap.flat(8), ITEMS, 2)),
        [b"\1\1\2", u64(1, 3), b"abb", b"\5"],
        ["a", None, "bb"],
    ),
    "large": page(
        pa.large_string(),
        ap.dictionary(ap.flat(8), ITEMS, 2),
        [b"\1\0\2", u64(1, 3), b"abb"],
        ["a", None, "bb"],
        ref=False,
    ),
    "binary": page(
        pa.binary(), ap.dictionary(ap.flat(8), ITEMS, 2), [b"\1\0\2", u64(1, 3), b"abb"], [b"a", None, b"bb"]
    ),
    "wide indices": page(
        pa.string(),
        ap.dictionary(ap.flat(16), ITEMS, 2),
        [b"\1\0\0\0\2\0", u64(1, 3), b"abb"],
        ["a", None, "bb"],
        ref=False,
    ),
    "packed indices": page(
        pa.string(),
        ap.dictionary(ap.bitpacked(2, 8), ITEMS, 2),
        [b"\x21", u64(1, 3), b"abb"],
        ["a", None, "bb"],
    ),
    "fsst items": page(
        IN_DICT,
        ap.dictionary(ap.flat(8), ap.fsst(ap.binary(ap.flat(64, 1), ap.flat(8, 2), 9), WORDS), 2),
        [b"\0\1\1", u64(2, 4), b"\x00\x01\xff\x78"],
        ["helloworld", "x", "x"],
    ),
    "typed, null index": page(
        IN_DICT,
        ap.dictionary(ap.some_nulls(ap.flat(1, 3), ap.flat(8)), ITEMS, 2),
        [b"\0\1\1", u64(1, 3), b"abb", b"\5"],
        ["a", None, "bb"],
        ref=False,
    ),
    "typed, no index": page(
        IN_DICT, ap.dictionary(ap.all_nulls(), ITEMS, 2), [b"", u64(1, 3), b"abb"], [None] * 3, ref=False
    ),
    "typed, numbers": page(
        pa.dictionary(pa.int8(), pa.int32()),
        ap.dictionary(ap.no_nulls(ap.flat(8)), ap.some_nulls(ap.flat(1, 2), ap.flat(32, 1)), 3),
        [b"\0\2\1", INTS, b"\3"],
        [1, None, 2],
    ),
}

NESTED = {
    "list, packed ends": Case(
        pa.list_(pa.int32()),
        [TreeColumn([TreePage(ap.list_of(ap.bitpacked(3, 64), 4, 3), [bytes([0xF2, 0])], 3)]), LIST_ITEMS],
        LISTS,
    ),
    "list, empty pages": Case(
        pa.large_list(pa.int32()),
        [
            TreeColumn([TreePage(EMPTY_LIST, [], 0), TreePage(LIST, [u64(2, 6, 3)], 3), TreePage(EMPTY_LIST, [], 0)]),
            TreeColumn([TreePage(ap.all_nulls(), [], 0), *LIST_ITEMS.pages]),
        ],
        LISTS,
    ),
    "list, said to be valid": Case(
        pa.list_(pa.int32()),
        [TreeColumn([TreePage(ap.no_nulls(LIST), [u64(2, 6, 3)], 3)]), LIST_ITEMS],
        LISTS,
        reference=False,
    ),
    "packed without asking": Case(PAIR, [TreeColumn([TreePage(PACKED, [ROWS], 2)])], PAIRS, reference=False),
    "packed, several pages": Case(
        PAIR,
        [
            TreeColumn(
                [
                    TreePage(PACKED, [], 0),
                    TreePage(PACKED, [ROWS], 2),
                    TreePage(ap.packed_struct([ap.flat(8), ap.flat(32)], 1), [b"", ROWS], 2),
                ]
            )
        ],
        PAIRS * 2,
        metadata={"packed": "true"},
    ),
    "packed, with nulls": Case(
        PAIR,
        [TreeColumn([TreePage(ap.some_nulls(ap.flat(1, 1), PACKED), [ROWS, b"\2"], 2)])],
        [None, PAIRS[1]],
        reference=False,
    ),
    "packed lists": Case(
        pa.struct([("a", pa.int8()), ("b", pa.list_(pa.list_(pa.int8(), 2), 2))]),
        [
            TreeColumn(
                [
                    TreePage(
                        ap.packed_struct(
                            [ap.flat(8), ap.fixed_size_list(2, ap.fixed_size_list(2, ap.no_nulls(ap.flat(8))))]
                        ),
                        [bytes(range(10))],
                        2,
                    )
                ]
            )
        ],
        [{"a": 0, "b": [[1, 2], [3, 4]]}, {"a": 5, "b": [[6, 7], [8, 9]]}],
        metadata={"lance-encoding:packed": "true"},
    ),
    "asked to be packed": Case(
        PAIR,
        [
            TreeColumn([TreePage(ap.struct_header(), [], 3)]),
            TreeColumn([TreePage(ap.flat(8), [b"\1\2\3"], 3)]),
            TreeColumn([TreePage(FLAT32, [INTS], 3)]),
        ],
        [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 3, "b": 3}],
        reference=False,  # as 0.18 wrote it
        metadata={"lance-encoding:packed": "true"},
    ),
    "empty, packed": Case(PAIR, [TreeColumn([])], [], metadata={"packed": "true"}),
    "blobs, nulls in pages": Case(
        pa.large_binary(),
        [
            TreeColumn(
                [
                    TreePage(ap.no_nulls(ap.packed_struct([ap.flat(64), ap.flat(64)])), [u64(0, 5, 1, 0)], 2),
                    TreePage(ap.packed_struct([ap.flat(64), ap.flat(64)]), [u64(64, 2, 0, 3)], 2),
                ],
                encoding=ap.BLOB,
            )
        ],
        [b"hello", None, b"ab", b"hel"],
        reference=False,  # the reference wants values in the order of the rows
        metadata=BLOB,
        outside=(b"hello", b"ab"),
    ),
}

CASES = {
    f"{group}: {name}": case
    for group, cases in {
        "golden": GOLDEN,
        "fixed": FIXED,
        "text": TEXT_CASES,
        "dictionary": DICTIONARIES,
        "nested": NESTED,
    }.items()
    for name, case in cases.items()
}
