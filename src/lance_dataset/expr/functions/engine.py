"""Functions about the engine, functions about columns rather than values, and random values."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lance_dataset._version import __version__
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.sql_types import arrow_type_name

__all__ = ["ALIASES", "FUNCTIONS"]

_METADATA = pa.map_(pa.string(), pa.string())


def _random(rows: int) -> pa.Array:
    """Return random numbers in [0, 1), uniformly distributed."""
    return pa.array(np.random.default_rng().random(rows))


def _uuid(rows: int) -> pa.Array:
    """Return random identifiers (version 4)."""
    noise = np.frombuffer(os.urandom(16 * rows), np.uint8).reshape(rows, 16).copy()
    noise[:, 6] = noise[:, 6] & 0x0F | 0x40
    noise[:, 8] = noise[:, 8] & 0x3F | 0x80
    digits = noise.tobytes().hex()
    texts = [digits[at : at + 32] for at in range(0, len(digits), 32)]
    return pa.array([f"{t[:8]}-{t[8:12]}-{t[12:16]}-{t[16:20]}-{t[20:]}" for t in texts], pa.string())


def _version() -> pa.Scalar:
    return pa.scalar(f"lance-dataset {__version__}, {platform.machine()} on {platform.system().lower()}")


def _metadata(field: pa.Field) -> dict[str, str]:
    pairs = sorted((field.metadata or {}).items())
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in pairs}


def _arrow_metadata(field: pa.Field, key: pa.Scalar | None = None) -> pa.Scalar:
    if key is None:
        return pa.scalar(list(_metadata(field).items()), _METADATA)
    if not (pa.types.is_string(key.type) and key.is_valid):
        raise pa.ArrowInvalid("arrow_metadata needs the key as a string")
    return pa.scalar(_metadata(field).get(key.as_py()), pa.string())


def _arrow_field(field: pa.Field) -> pa.Scalar:
    target = pa.struct(
        [
            pa.field("name", pa.string(), nullable=False),
            pa.field("data_type", pa.string(), nullable=False),
            pa.field("nullable", pa.bool_(), nullable=False),
            pa.field("metadata", _METADATA, nullable=False),
        ]
    )
    described = {
        "name": field.name,
        "data_type": arrow_type_name(field.type),
        "nullable": field.nullable,
        "metadata": list(_metadata(field).items()),
    }
    return pa.scalar(described, target)


def _only_described(*_: Any) -> Any:
    raise TypeError("functions that describe a field have no kernel")


def _cast_types(types: Sequence[pa.DataType]) -> list[pa.DataType]:
    return [types[1], types[1]]


FUNCTIONS = [
    Function("cast_to_type", (Kind.ANY, Kind.ANY), lambda value, like: value, coercion=_cast_types),
    Function("random", (), _random, volatile=True),
    Function("uuid", (), _uuid, volatile=True),
    Function("version", (), _version),
    Function("arrow_metadata", (Kind.ANY, Kind.ANY), _only_described, optional=1, describe=_arrow_metadata),
    Function("arrow_field", (Kind.ANY,), _only_described, describe=_arrow_field),
]
ALIASES = {"rand": "random"}
