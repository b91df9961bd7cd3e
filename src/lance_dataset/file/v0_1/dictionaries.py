"""Dictionary values, which legacy (0.1) tables store outside the schema: in the manifest, and in each data file.

A field has one array of values for the whole table. Strings and binaries are stored as their bytes followed by 64-bit
offsets that count from the start of the file. Integers are stored unchanged. Nulls are not stored; an empty value
stands for a null.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import CorruptFileError, SchemaError, UnsupportedError
from lance_dataset.file.buffers import as_integers, bit_width, octets
from lance_dataset.file.kinds import is_binary_like, is_text, is_wide
from lance_dataset.file.v0_1.arrays import value_offsets
from lance_dataset.io.base import InputFile
from lance_dataset.types.schema import Field, Schema
from lancecodec import CodecError, utf8

__all__ = ["empty_as_null", "is_dictionary_value", "read_dictionary", "with_dictionaries", "write_dictionaries"]

_OFFSET = 8


def is_dictionary_value(arrow_type: pa.DataType) -> bool:
    """Return True if readers of legacy tables support dictionaries with values of that type."""
    return is_binary_like(arrow_type) or pa.types.is_integer(arrow_type)


# -- reading ---------------------------------------------------------------------------------------------------------


def with_dictionaries(
    schema: Schema, data: bytes | pa.Buffer | InputFile, where: str, *, empty_is_null: bool = True
) -> Schema:
    """Return the schema with the values of its dictionary fields.

    Parameters
    ----------
    schema
        Schema from a manifest. Fields that record the location of their values get `Field.dictionary_values`.
    data
        Content of the whole file that has the schema, or that file opened.
    where
        Name of the file, for error messages.
    empty_is_null
        See `read_dictionary`.

    Raises
    ------
    CorruptFileError
        The bytes contradict the format.
    """

    def filled(node: Field) -> Field:
        children = tuple(filled(child) for child in node.children)
        values = node.dictionary_values
        if node.dictionary is not None and pa.types.is_dictionary(node.storage_type):
            values = read_dictionary(
                data,
                *node.dictionary,
                node.storage_type.value_type,
                f"{where}, dictionary of field {node.name!r}",
                empty_is_null=empty_is_null,
            )
        return replace(node, children=children, dictionary_values=values)

    return Schema(tuple(filled(top) for top in schema.fields), schema.metadata)


def read_dictionary(
    data: bytes | pa.Buffer | InputFile,
    offset: int,
    length: int,
    value_type: pa.DataType,
    where: str,
    *,
    empty_is_null: bool = True,
) -> pa.Array:
    """Read the values of a dictionary.

    Parameters
    ----------
    data
        Content of the whole file, or that file opened.
    offset, length
        Position in bytes (of the offsets, for strings and binaries) and number of values, as in the schema.
    value_type
        Arrow type of the values.
    where
        Name of the file and the field, for error messages.
    empty_is_null
        True if empty strings and binaries are nulls, as in all releases except 0.4.

    Returns
    -------
    pyarrow.Array
        Array of `length` values that do not refer to `data`.

    Raises
    ------
    CorruptFileError
        The range lies outside the file, its offsets descend, or a string is not UTF-8.
    """
    source = pa.py_buffer(data) if isinstance(data, bytes) else data
    if length == 0:
        return pa.array([], value_type)
    if is_binary_like(value_type):
        return _read_binary(source, offset, length, value_type, where, empty_is_null)
    try:
        size = (length * bit_width(value_type) + 7) // 8
    except ValueError as error:
        raise CorruptFileError(f"{where}: legacy tables have no dictionaries of {value_type}") from error
    values = _range(source, offset, length, size, where)
    return pa.Array.from_buffers(value_type, length, [None, pa.py_buffer(values.to_pybytes())])


def _range(source: pa.Buffer | InputFile, offset: int, length: int, size: int, where: str) -> pa.Buffer:
    if offset < 0 or length < 0 or offset + size > source.size:
        raise CorruptFileError(
            f"{where}: {length} values at byte {offset} do not fit into the {source.size} bytes of the file"
        )
    return source.slice(offset, size) if isinstance(source, pa.Buffer) else source.read(offset, size)


def _read_binary(
    source: pa.Buffer | InputFile, offset: int, length: int, value_type: pa.DataType, where: str, empty_is_null: bool
) -> pa.Array:
    stored = _range(source, offset, length, (length + 1) * _OFFSET, where)
    positions = np.array(as_integers(stored, np.int64, length + 1), np.int64)  # a mapped file may change
    if positions[0] < 0 or positions[-1] > source.size or bool((positions[1:] < positions[:-1]).any()):
        raise CorruptFileError(f"{where}: the offsets of its values descend, or point outside the file")
    size = int(positions[-1] - positions[0])
    wide = is_wide(value_type)
    if not wide and size >= 2**31:
        raise CorruptFileError(f"{where}: {size} bytes are too many for values of type {value_type}")
    offsets = pa.py_buffer((positions - positions[0]).astype(np.int64 if wide else np.int32))
    content = pa.py_buffer(_range(source, int(positions[0]), length, size, where).to_pybytes())
    if is_text(value_type):
        try:
            utf8.validate(octets(content), octets(offsets), wide)
        except CodecError as error:
            raise CorruptFileError(f"{where}: {error}") from error
    values = pa.Array.from_buffers(value_type, length, [None, offsets, content])
    return empty_as_null(values) if empty_is_null else values


def empty_as_null(values: pa.Array) -> pa.Array:
    """Return the values as they are read: empty strings and binaries become null."""
    if not is_binary_like(values.type):
        return values
    empty = pc.equal(pc.binary_length(values), 0)
    return pc.if_else(empty, pa.scalar(None, values.type), values) if pc.any(empty).as_py() else values


# -- writing ---------------------------------------------------------------------------------------------------------


def write_dictionaries(schema: Schema, position: int) -> tuple[list[bytes], Schema]:
    """Encode the values of all dictionary fields as blocks, to be written consecutively from a position.

    Parameters
    ----------
    schema
        Schema whose dictionary fields have their values.
    position
        Position in the file at which the first block will start.

    Returns
    -------
    blocks : list of bytes
        In ascending order of field ids.
    schema : Schema
        The same schema, with `Field.dictionary` of these blocks.

    Raises
    ------
    SchemaError
        The values of a dictionary field are not known.
    UnsupportedError
        Dictionary values have a type that no reader of legacy tables supports.

    Warns
    -----
    UserWarning
        There are empty values, which only release 0.4 distinguishes from nulls.
    """
    blocks: list[bytes] = []
    places: dict[int, tuple[int, int]] = {}
    nodes = [node for node in schema.walk() if pa.types.is_dictionary(node.storage_type)]
    for node in sorted(nodes, key=lambda node: node.id):
        values = _known_values(node)
        if is_binary_like(values.type) and not empty_as_null(values).equals(values):
            warnings.warn(
                f"column {node.name!r}: the dictionary of this table was written by release 0.4, which read its empty "
                "values as such; from this commit on they are null, as in all later releases. An upgrade with "
                'optimize.compact_files(data_storage_version="2.2") keeps them',
                UserWarning,
                stacklevel=2,
            )
        content, offsets = _encode_values(values, position)
        places[node.id] = (position + len(content), len(values)) if offsets else (position, len(values))
        blocks.append(content + offsets)
        position += len(content) + len(offsets)
    return blocks, _placed(schema, places) if places else schema


def _known_values(node: Field) -> pa.Array:
    values, value_type = node.dictionary_values, node.storage_type.value_type
    if values is None:
        raise SchemaError(
            f"field {node.name!r} (id {node.id}): the values of its dictionary are not known, and a legacy (0.1) table "
            "has to hold them; write the data in this version, or store it in a later one"
        )
    if values.type != value_type:
        raise SchemaError(f"field {node.name!r}: its dictionary has values of {values.type}, the field {value_type}")
    if not is_dictionary_value(value_type):
        raise UnsupportedError(f"field {node.name!r}: legacy (0.1) tables have no dictionaries of {value_type}")
    return values


def _encode_values(values: pa.Array, position: int) -> tuple[bytes, bytes]:
    """Return the content, and the offsets if there are any."""
    if not is_binary_like(values.type):
        plain = pc.fill_null(values, 0) if values.null_count else values
        width = bit_width(values.type) // 8
        return plain.buffers()[1].slice(plain.offset * width, len(plain) * width).to_pybytes(), b""
    given: pa.Array = pc.fill_null(values, b"" if not is_text(values.type) else "")
    offsets, content = value_offsets(given), given.buffers()[2]
    first, last = int(offsets[0]), int(offsets[-1])
    held = content.slice(first, last - first).to_pybytes() if last > first else b""
    return held, (offsets.astype(np.int64) - first + position).astype("<i8").tobytes()


def _placed(schema: Schema, places: dict[int, tuple[int, int]]) -> Schema:
    def placed(node: Field) -> Field:
        children = tuple(placed(child) for child in node.children)
        return replace(node, children=children, dictionary=places.get(node.id, node.dictionary))

    return Schema(tuple(placed(top) for top in schema.fields), schema.metadata)
