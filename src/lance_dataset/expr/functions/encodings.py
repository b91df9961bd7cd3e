"""``encode`` and ``decode``: conversion between bytes and text."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa

from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.rowwise import constant, rowwise

__all__ = ["ALIASES", "FUNCTIONS"]

_ENCODINGS = ("base64", "base64pad", "hex")


def _encoding(datum: Any) -> str:
    """Return the name of an encoding, which must be constant."""
    name = constant(datum)
    if name not in _ENCODINGS:
        raise pa.ArrowInvalid(f"Unknown encoding {name!r}; the encodings are {', '.join(_ENCODINGS)}")
    return str(name)


def _encode(value: Any, encoding: Any) -> Any:
    name = _encoding(encoding)

    def encode(given: str | bytes) -> str:
        raw = given.encode() if isinstance(given, str) else given
        if name == "hex":
            return raw.hex()
        text = base64.b64encode(raw).decode()
        return text if name == "base64pad" else text.rstrip("=")

    large = pa.types.is_large_string(value.type) or pa.types.is_large_binary(value.type)
    return rowwise(encode, pa.large_string() if large else pa.string())(value)


def _decode(value: Any, encoding: Any) -> Any:
    name = _encoding(encoding)

    def decode(given: str | bytes) -> bytes:
        raw = given.encode() if isinstance(given, str) else given
        try:
            if name == "hex":
                return bytes.fromhex(raw.decode("ascii")) if not raw.split(None, 1)[1:] else _not_encoded(raw, name)
            return base64.b64decode(raw.rstrip(b"=") + b"=" * (-len(raw.rstrip(b"=")) % 4), validate=True)
        except ValueError:
            return _not_encoded(raw, name)

    large = pa.types.is_large_string(value.type) or pa.types.is_large_binary(value.type)
    return rowwise(decode, pa.large_binary() if large else pa.binary())(value)


def _not_encoded(raw: bytes, name: str) -> bytes:
    raise pa.ArrowInvalid(f"Cannot decode {raw!r} as {name}")


FUNCTIONS = [
    Function("encode", (Kind.BYTES, Kind.TEXT), _encode),
    Function("decode", (Kind.BYTES, Kind.TEXT), _decode),
]
ALIASES: dict[str, str] = {}
