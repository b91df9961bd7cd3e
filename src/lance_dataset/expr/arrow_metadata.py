"""Serialized form of a `pyarrow.compute.Expression`, token by token.

Arrow writes an expression as a record batch of one row. Its columns hold the literals and the options of calls; the
metadata of its schema spells the tree in prefix order, under keys that repeat: ``call``, ``field_ref``,
``nested_field_ref``, ``literal``, ``options``, ``end``. `pyarrow.Schema.metadata` is a dictionary and loses repeated
keys, so they are read through Arrow's C data interface.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.late_dataclass import dataclass

__all__ = ["SerializedExpression", "serialized"]

Token = tuple[str, str]


@dataclass(frozen=True)
class SerializedExpression:
    """An expression in the form that Arrow serializes.

    Attributes
    ----------
    tokens
        Kind and text, in prefix order.
    values
        Scalars that ``literal`` and ``options`` tokens refer to by number.
    """

    tokens: tuple[Token, ...]
    values: tuple[pa.Scalar, ...]


def serialized(expression: pc.Expression) -> SerializedExpression | None:
    """Return the tokens of an expression; None if Arrow cannot serialize it, for example with columns by position."""
    try:
        buffer = expression.__reduce__()[1][0]
        batch = pa.ipc.open_file(buffer).get_batch(0)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None
    pairs = _metadata_pairs(batch.schema)
    values = tuple(column[0] for column in batch.columns)
    return SerializedExpression(tuple((key.decode(), value.decode()) for key, value in pairs), values)


class _ArrowSchema(ctypes.Structure):
    """Head of ``struct ArrowSchema`` of the C data interface."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _metadata_pairs(schema: pa.Schema) -> list[tuple[bytes, bytes]]:
    """Return the keys and values of the metadata of a schema, in order and with repeats."""
    capsule = schema.__arrow_c_schema__()  # owns the memory that is read below
    exported = _ArrowSchema.from_address(_capsule_pointer(capsule, b"arrow_schema"))
    address = exported.metadata
    if not address:
        return []
    count, address = ctypes.c_int32.from_address(address).value, address + 4
    pairs = []
    for _ in range(count):
        key, address = _sized_bytes(address)
        value, address = _sized_bytes(address)
        pairs.append((key, value))
    return pairs


def _sized_bytes(address: int) -> tuple[bytes, int]:
    length = ctypes.c_int32.from_address(address).value
    return ctypes.string_at(address + 4, length), address + 4 + length
