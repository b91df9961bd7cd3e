"""Model of legacy (0.1) files: the values they keep, and an encoder that uses every freedom of the format.

The encoder shares no code with the package, so the two cannot share a mistake.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lance_dataset._proto import file_pb2, table_pb2
from lance_dataset.types.schema import Field, Schema

__all__ = ["LegacyOptions", "as_legacy", "encode_legacy"]


def as_legacy(array: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array:
    """Return the array as it comes back from a legacy file."""
    values = [_kept(value, field.type, field.nullable) for value in array.to_pylist()]
    if pa.types.is_dictionary(field.type):
        return pa.array(values, field.type.value_type).dictionary_encode().cast(field.type)
    return pa.array(values, field.type)


def _kept(value: object, kind: pa.DataType, nullable: bool) -> object:
    kinds = pa.types
    if kinds.is_null(kind):
        return None
    if kinds.is_struct(kind):
        given = value or {}
        return {child.name: _kept(given.get(child.name), child.type, child.nullable) for child in kind}
    if kinds.is_fixed_size_list(kind):
        items = value or [None] * kind.list_size
        return [_kept(item, kind.value_type, True) for item in items]
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return [_kept(item, kind.value_type, kind.value_field.nullable) for item in value or []]
    if kinds.is_dictionary(kind):
        return value or None if _is_variable(kind.value_type) else value
    if _is_variable(kind):
        empty = "" if kinds.is_string(kind) or kinds.is_large_string(kind) else b""
        return (value or None) if nullable else value or empty
    return _zero(kind) if value is None else value


def _is_variable(kind: pa.DataType) -> bool:
    kinds = pa.types
    return any(test(kind) for test in (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary))


def _zero(kind: pa.DataType) -> object:
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(max(kind.bit_width // 8, 1)))])[0].as_py()


@dataclass
class LegacyOptions:
    """Freedoms of a writer.

    Attributes
    ----------
    align
        Pages start at multiples of this number.
    gap
        Bytes of junk before the first page, between the bytes and offsets of strings, and before the page table.
    excess
        Number of values that each page has after those of its batch.
    from_zero
        True to start the page table at field 0, like releases up to 0.7.
    with_manifest
        True to embed the schema.
    first_offset
        First offset of lists; the items have junk before it.
    minor
        Minor version in the footer.
    """

    align: int = 1
    gap: int = 0
    excess: int = 0
    from_zero: bool = False
    with_manifest: bool = True
    first_offset: int = 0
    minor: int = 2


@dataclass
class _File:
    options: LegacyOptions
    data: bytearray = field(default_factory=bytearray)

    def put(self, part: bytes) -> int:
        self.data += bytes(-len(self.data) % self.options.align)
        position = len(self.data)
        self.data += part
        return position

    def junk(self) -> None:
        self.data += b"\xa5" * self.options.gap


def encode_legacy(schema: Schema, batches: Sequence[pa.RecordBatch], options: LegacyOptions | None = None) -> bytes:
    """Encode a legacy file; fields of dictionary types must carry their values (`Field.dictionary_values`)."""
    options = options or LegacyOptions()
    file = _File(options)
    file.junk()
    cells: dict[tuple[int, int], tuple[int, int]] = {}
    for number, batch in enumerate(batches):
        for top, array in zip(schema.fields, batch.columns, strict=True):
            _put_pages(file, top, array.to_pylist(), lambda node, cell, n=number: cells.__setitem__((node.id, n), cell))
    file.junk()
    ids = [node.id for node in schema.walk()]
    paged = [node.id for node in schema.walk() if node.logical_type != "struct"]
    base = 0 if options.from_zero else min(ids)
    table = file.put(
        b"".join(
            struct.pack("<qq", *cells.get((field_id, number), (0, 0)))
            for field_id in range(base, max(paged, default=-1) + 1)
            for number in range(len(batches))
        )
    )
    metadata = file_pb2.Metadata(page_table_position=table)
    if options.with_manifest:
        metadata.manifest_position = _put_manifest(file, schema)
    metadata.batch_offsets.extend(np.cumsum([0, *(batch.num_rows for batch in batches)]).tolist())
    encoded = metadata.SerializeToString()
    position = file.put(struct.pack("<I", len(encoded)) + encoded)
    return bytes(file.data) + struct.pack("<qhh4s", position, 0, options.minor, b"LANC")


def _put_manifest(file: _File, schema: Schema) -> int:
    messages = schema.to_proto()
    nodes = {node.id: node for node in schema.walk()}
    for message in messages:
        values = nodes[message.id].dictionary_values
        if values is not None:
            message.dictionary.offset = _put_values(file, [] if values is None else values.to_pylist(), values.type)
            message.dictionary.length = len(values)
    encoded = table_pb2.Manifest(fields=messages, version=1).SerializeToString()
    return file.put(struct.pack("<I", len(encoded)) + encoded)


def _put_values(file: _File, values: list, kind: pa.DataType) -> int:
    """Write leaf values and return the position to record for them."""
    if _is_variable(kind):
        raw = [b"" if value is None else value.encode() if isinstance(value, str) else value for value in values]
        start = len(file.data)
        file.data += b"".join(raw)
        file.junk()
        ends = start + np.cumsum([0, *(len(part) for part in raw)])
        return file.put(ends.astype("<i8").tobytes())
    return file.put(_fixed_bytes(values, kind))


def _fixed_bytes(values: list, kind: pa.DataType) -> bytes:
    while pa.types.is_fixed_size_list(kind):
        values = [item for value in values for item in (value or [None] * kind.list_size)]
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return np.packbits(np.array(values, bool), bitorder="little").tobytes()
    array = pa.array([_zero(kind) if value is None else value for value in values], kind)
    width = kind.bit_width // 8
    return array.buffers()[1].to_pybytes()[: len(values) * width] if values else b""


def _put_pages(file: _File, node: Field, values: list, put_cell: Callable[[Field, tuple[int, int]], None]) -> None:
    kind, kinds = node.storage_type, pa.types
    if kinds.is_struct(kind):
        for child in node.children:
            below = [None if value is None else value[child.name] for value in values]
            _put_pages(file, child, below, put_cell)
        return
    extra = values[:1] * file.options.excess
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        skipped = file.options.first_offset
        items = [item for value in values for item in value or []]
        junk = items[:1] * skipped
        ends = len(junk) + np.cumsum([0, *(len(value or []) for value in values)])
        ends = np.append(ends, [ends[-1]] * len(extra))
        position = file.put(ends.astype("<i4" if kinds.is_list(kind) else "<i8").tobytes())
        put_cell(node, (position, len(ends)))
        _put_pages(file, node.children[0], [*junk, *items], put_cell)
        return
    values = [*values, *extra]
    if kinds.is_null(kind):
        put_cell(node, (len(file.data), len(values)))
    elif kinds.is_dictionary(kind):
        known = node.dictionary_values.to_pylist()
        indices = [0 if value is None and None not in known else known.index(value) for value in values]
        put_cell(node, (file.put(_fixed_bytes(indices, kind.index_type)), len(values)))
    else:
        put_cell(node, (_put_values(file, values, kind), len(values)))
