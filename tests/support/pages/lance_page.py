"""Pages of 2.1 and 2.2 files, taken apart and assembled without any code of this project.

Reading: write data with pylance, then inspect the page's layout and its buffers::

    [page] = pages_of(pa.array([1, 2, None], pa.int32()), version="2.1")
    page.layout    # {"mini_block_layout": {"def_compression": {"flat": {"bits_per_value": 16}}, ..., "num_items": 3}}
    page.buffers   # [chunk words, chunks, ...] as bytes, in page order
    page.length    # rows

Field metadata (``lance-encoding:compression`` and so on) goes through `metadata=`. `read_pages(path, column)` does the
same for an existing file; the ``*.lance`` files of a dataset are in its ``data`` folder.

Writing: one column, any layout and buffers, and pylance reads it::

    layout = mini_block(flat(32), num_items=3, definition=flat(16), layers=[3], version="2.1")
    write_pages(path, pa.field("a", pa.int32()), [Page(layout, [words, chunks], 3)], version="2.1")
    assert read_back(path).to_pylist() == [1, 2, None]

A message is a dict of the fields it holds, named as in `MESSAGES`; absent fields are absent keys. `parse` and
`serialize` translate any of them. `flat`, `inline`, `variable`, ... build the usual CompressiveEncodings.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

Message: TypeAlias = dict[str, Any]

_FOOTER = struct.Struct("<QQQIIHH4s")
_URL = "/lance.encodings21.PageLayout"
_VERSIONS = {"2.1": (2, 1), "2.2": (2, 2)}
#: ColumnEncoding `values`, as the reference writes it for every column.
_COLUMN_ENCODING = ("/lance.encodings.ColumnEncoding", b"\x0a\x00")

#: message -> field number -> (name, kind); kind is "int", "bytes", "ints" (repeated), "messages:M" (repeated) or M.
MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "PageLayout": {
        1: ("mini_block_layout", "MiniBlockLayout"),
        2: ("constant_layout", "ConstantLayout"),
        3: ("full_zip_layout", "FullZipLayout"),
        4: ("blob_layout", "BlobLayout"),
    },
    "MiniBlockLayout": {
        1: ("rep_compression", "CompressiveEncoding"),
        2: ("def_compression", "CompressiveEncoding"),
        3: ("value_compression", "CompressiveEncoding"),
        4: ("dictionary", "CompressiveEncoding"),
        5: ("num_dictionary_items", "int"),
        6: ("layers", "ints"),
        7: ("num_buffers", "int"),
        8: ("repetition_index_depth", "int"),
        9: ("num_items", "int"),
        10: ("has_large_chunk", "int"),
    },
    "FullZipLayout": {
        1: ("bits_rep", "int"),
        2: ("bits_def", "int"),
        3: ("bits_per_value", "int"),
        4: ("bits_per_offset", "int"),
        5: ("num_items", "int"),
        6: ("num_visible_items", "int"),
        7: ("value_compression", "CompressiveEncoding"),
        8: ("layers", "ints"),
    },
    "ConstantLayout": {
        5: ("layers", "ints"),
        6: ("inline_value", "bytes"),
        7: ("rep_compression", "CompressiveEncoding"),
        8: ("def_compression", "CompressiveEncoding"),
        9: ("num_rep_values", "int"),
        10: ("num_def_values", "int"),
    },
    "BlobLayout": {1: ("inner_layout", "PageLayout"), 2: ("layers", "ints")},
    "CompressiveEncoding": {
        1: ("flat", "Flat"),
        2: ("variable", "Variable"),
        3: ("constant", "Constant"),
        4: ("out_of_line_bitpacking", "OutOfLineBitpacking"),
        5: ("inline_bitpacking", "InlineBitpacking"),
        6: ("fsst", "Fsst"),
        8: ("rle", "Rle"),
        9: ("byte_stream_split", "ByteStreamSplit"),
        10: ("general", "General"),
        11: ("fixed_size_list", "FixedSizeList"),
        12: ("packed_struct", "PackedStruct"),
        13: ("variable_packed_struct", "VariablePackedStruct"),
    },
    "BufferCompression": {1: ("scheme", "int"), 2: ("level", "int")},
    "Flat": {1: ("bits_per_value", "int"), 2: ("data", "BufferCompression")},
    "Variable": {1: ("offsets", "CompressiveEncoding"), 2: ("values", "BufferCompression")},
    "Constant": {1: ("value", "bytes")},
    "OutOfLineBitpacking": {1: ("uncompressed_bits_per_value", "int"), 3: ("values", "CompressiveEncoding")},
    "InlineBitpacking": {1: ("uncompressed_bits_per_value", "int"), 2: ("values", "BufferCompression")},
    "Fsst": {1: ("symbol_table", "bytes"), 2: ("values", "CompressiveEncoding")},
    "Rle": {1: ("values", "CompressiveEncoding"), 2: ("run_lengths", "CompressiveEncoding")},
    "ByteStreamSplit": {1: ("values", "CompressiveEncoding")},
    "General": {1: ("compression", "BufferCompression"), 3: ("values", "CompressiveEncoding")},
    "FixedSizeList": {
        1: ("items_per_value", "int"),
        2: ("values", "CompressiveEncoding"),
        3: ("has_validity", "int"),
    },
    "PackedStruct": {1: ("bits_per_value", "ints"), 2: ("values", "CompressiveEncoding")},
    "VariablePackedStruct": {1: ("fields", "messages:FieldEncoding")},
    "FieldEncoding": {
        1: ("value", "CompressiveEncoding"),
        2: ("bits_per_value", "int"),
        3: ("bits_per_length", "int"),
    },
    "Any": {1: ("type_url", "bytes"), 2: ("value", "bytes")},
    "ColumnMetadata": {1: ("encoding", "Encoding"), 2: ("pages", "messages:Page")},
    "Encoding": {2: ("direct", "DirectEncoding")},
    "DirectEncoding": {1: ("encoding", "Any")},
    "Page": {
        1: ("buffer_offsets", "ints"),
        2: ("buffer_sizes", "ints"),
        3: ("length", "int"),
        4: ("encoding", "Encoding"),
        5: ("priority", "int"),
    },
}


@dataclass(frozen=True)
class Page:
    """Page of one leaf column.

    Attributes
    ----------
    layout
        The PageLayout message.
    buffers
        The page buffers, in page order.
    length
        Number of rows.
    """

    layout: Message
    buffers: Sequence[bytes]
    length: int

    @property
    def mini(self) -> Message:
        """MiniBlockLayout; KeyError for another layout."""
        layout: Message = self.layout["mini_block_layout"]
        return layout

    @property
    def full(self) -> Message:
        """FullZipLayout; KeyError for another layout."""
        layout: Message = self.layout["full_zip_layout"]
        return layout


# -- protobuf --------------------------------------------------------------------------------------------------------


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value, at = _varint(data, at)
        if key & 7 == 2:
            yield key >> 3, data[at : at + value]
            at += value
        elif key & 7 == 0:
            yield key >> 3, value
        else:
            raise ValueError(f"wire type {key & 7} is not used in these messages")


def parse(name: str, data: bytes) -> Message:
    """Decode a message of `MESSAGES`; a field that is not listed is an error."""
    message: Message = {}
    for number, value in _fields(data):
        field, kind = MESSAGES[name][number]
        if kind == "int" or kind == "bytes":
            message[field] = value
        elif kind == "ints":
            values = [value] if isinstance(value, int) else [*_varints(value)]
            message[field] = message.get(field, []) + values
        elif kind.startswith("messages:"):
            message[field] = [*message.get(field, []), parse(kind[9:], bytes(value))]
        else:
            message[field] = parse(kind, bytes(value))
    return message


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def serialize(name: str, message: Message) -> bytes:
    """Encode a message of `MESSAGES`, fields in the order of their numbers."""
    out = bytearray()
    names = {field: (number, kind) for number, (field, kind) in MESSAGES[name].items()}
    for field, value in sorted(message.items(), key=lambda item: names[item[0]][0]):
        number, kind = names[field]
        if kind == "int":
            out += _varint_bytes(number << 3) + _varint_bytes(value)
            continue
        for part in _parts(kind, value):
            out += _varint_bytes(number << 3 | 2) + _varint_bytes(len(part)) + part
    return bytes(out)


def _parts(kind: str, value: Any) -> list[bytes]:
    if kind == "bytes":
        return [bytes(value)]
    if kind == "ints":
        return [b"".join(map(_varint_bytes, value))] if value else []
    if kind.startswith("messages:"):
        return [serialize(kind[9:], part) for part in value]
    return [serialize(kind, value)]


# -- CompressiveEncoding and layouts ---------------------------------------------------------------------------------


def flat(bits: int) -> Message:
    return {"flat": {"bits_per_value": bits}}


def inline(bits: int) -> Message:
    return {"inline_bitpacking": {"uncompressed_bits_per_value": bits}}


def out_of_line(bits: int, width: int) -> Message:
    return {"out_of_line_bitpacking": {"uncompressed_bits_per_value": bits, "values": flat(width)}}


def variable(offset_bits: int = 32) -> Message:
    return {"variable": {"offsets": flat(offset_bits)}}


def rle(bits: int) -> Message:
    return {"rle": {"values": flat(bits), "run_lengths": flat(8)}}


def split(bits: int) -> Message:
    return {"byte_stream_split": {"values": flat(bits)}}


def fsst(table: bytes, offset_bits: int = 32) -> Message:
    return {"fsst": {"symbol_table": table, "values": variable(offset_bits)}}


def general(scheme: str, values: Message) -> Message:
    return {"general": {"compression": {"scheme": {"lz4": 1, "zstd": 2}[scheme]}, "values": values}}


def mini_block(
    values: Message,
    *,
    num_items: int,
    layers: Sequence[int] = (1,),
    num_buffers: int = 1,
    repetition: Message | None = None,
    definition: Message | None = None,
    dictionary: tuple[Message, int] | None = None,
    version: str = "2.2",
) -> Message:
    """Return a PageLayout of mini-blocks; `dictionary` is (encoding, number of items)."""
    mini: Message = {"value_compression": values, "num_items": num_items}
    mini |= {"layers": list(layers), "num_buffers": num_buffers}
    if repetition is not None:
        mini |= {"rep_compression": repetition, "repetition_index_depth": 1}
    if definition is not None:
        mini["def_compression"] = definition
    if dictionary is not None:
        mini["dictionary"], mini["num_dictionary_items"] = dictionary
    if version != "2.1":
        mini["has_large_chunk"] = 1
    return {"mini_block_layout": mini}


def full_zip(
    values: Message,
    *,
    num_items: int,
    num_visible_items: int | None = None,
    layers: Sequence[int] = (1,),
    bits_rep: int = 0,
    bits_def: int = 0,
    bits_per_value: int | None = None,
    bits_per_offset: int | None = None,
) -> Message:
    """Return a PageLayout of zipped items; give one of `bits_per_value` and `bits_per_offset`."""
    visible = num_items if num_visible_items is None else num_visible_items
    full: Message = {"num_items": num_items, "num_visible_items": visible, "value_compression": values}
    full |= {"layers": list(layers)}
    for name, value in (("bits_rep", bits_rep), ("bits_def", bits_def)):
        if value:
            full[name] = value
    if bits_per_value is not None:
        full["bits_per_value"] = bits_per_value
    if bits_per_offset is not None:
        full["bits_per_offset"] = bits_per_offset
    return {"full_zip_layout": full}


# -- files -----------------------------------------------------------------------------------------------------------


def read_pages(path: str | Path, column: int = 0) -> list[Page]:
    """Read the pages of leaf column number `column` of a 2.1 or 2.2 file."""
    data = Path(path).read_bytes()
    _, cmo, _, _, columns, _, _, magic = _FOOTER.unpack(data[-_FOOTER.size :])
    if magic != b"LANC" or column >= columns:
        raise ValueError(f"{path} is not a Lance file with a column {column}")
    position, size = struct.unpack_from("<QQ", data, cmo + 16 * column)
    pages = []
    for stored in parse("ColumnMetadata", data[position : position + size]).get("pages", []):
        ranges = zip(stored.get("buffer_offsets", []), stored.get("buffer_sizes", []), strict=True)
        described = stored["encoding"]["direct"]["encoding"]
        if described["type_url"].decode() != _URL:
            raise ValueError(f"{path}: a page of type {described['type_url']!r}")
        layout = parse("PageLayout", described.get("value", b""))
        pages.append(Page(layout, [data[at : at + count] for at, count in ranges], stored.get("length", 0)))
    return pages


def pages_of(
    values: pa.Array | Iterable[pa.Array], version: str, metadata: dict[str, str] | None = None, column: int = 0
) -> list[Page]:
    """Return the pages pylance makes of an array (or of several, written one after another); one file, one field."""
    arrays = [values] if isinstance(values, pa.Array) else list(values)
    schema = pa.schema([pa.field("a", arrays[0].type, metadata=metadata)])
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/page.lance"
        with LanceFileWriter(path, schema, version=version) as writer:
            for array in arrays:
                writer.write_batch(pa.record_batch([array], schema=schema))
        return read_pages(path, column)


def write_pages(path: str | Path, field: pa.Field, pages: Sequence[Page], version: str) -> None:
    """Write a file of one leaf column; the descriptor of the schema is the one pylance writes for `field`."""
    out = bytearray()

    def append(data: bytes) -> tuple[int, int]:
        position = len(out)
        out.extend(data)
        return position, len(data)

    stored, rows = [], 0
    for page in pages:
        ranges = []
        for buffer in page.buffers:
            ranges.append(append(bytes(buffer)))
            out.extend(b"\x48" * (-len(out) % 64))
        stored.append(
            {
                "buffer_offsets": [position for position, _ in ranges],
                "buffer_sizes": [size for _, size in ranges],
                "length": page.length,
                "encoding": _encoding(_URL, serialize("PageLayout", page.layout)),
                "priority": rows,
            }
        )
        rows += page.length
    descriptor = append(_descriptor(field, version) + b"\x10" + _varint_bytes(rows))
    metadata = {"encoding": _encoding(*_COLUMN_ENCODING), "pages": stored}
    column = append(serialize("ColumnMetadata", metadata))
    cmo, _ = append(struct.pack("<QQ", *column))
    gbo, _ = append(struct.pack("<QQ", *descriptor))
    append(_FOOTER.pack(column[0], cmo, gbo, 1, 1, *_VERSIONS[version], b"LANC"))
    Path(path).write_bytes(out)


def _encoding(url: str, value: bytes) -> Message:
    return {"direct": {"encoding": {"type_url": url.encode(), "value": value}}}


def _descriptor(field: pa.Field, version: str) -> bytes:
    """Return the FileDescriptor of an empty file with this field: it has the schema and no length."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/empty.lance"
        with LanceFileWriter(path, pa.schema([field]), version=version):
            pass
        data = Path(path).read_bytes()
    gbo = _FOOTER.unpack(data[-_FOOTER.size :])[2]
    position, size = struct.unpack_from("<QQ", data, gbo)
    return data[position : position + size]


def read_back(path: str | Path, rows: Sequence[int] | None = None) -> pa.ChunkedArray:
    """Read the only column with pylance: all of it, or some rows in ascending order."""
    reader = LanceFileReader(str(path))
    results = reader.read_all() if rows is None else reader.take_rows(list(rows))
    return results.to_table().column(0)
