"""Hash functions, and ``digest``, which takes the name of one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from lance_dataset.errors import UnsupportedError
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.list_layout import repeated
from lance_dataset.expr.rowwise import rowwise

__all__ = ["ALIASES", "FUNCTIONS"]

Digests = Callable[[Sequence[bytes]], list[bytes]]


def _by_library(name: str) -> Digests:
    algorithm = getattr(hashlib, name)
    return lambda values: [algorithm(value).digest() for value in values]


def _by_blake3(values: Sequence[bytes]) -> list[bytes]:
    try:
        from blake3 import blake3
    except ImportError as error:
        raise UnsupportedError("digest(..., 'blake3') needs the package blake3: pip install blake3") from error
    return [bytes(blake3(value).digest()) for value in values]


_ALGORITHMS: dict[str, Digests] = {
    **{name: _by_library(name) for name in ("md5", "sha224", "sha256", "sha384", "sha512", "blake2s", "blake2b")},
    "blake3": _by_blake3,
}


def _digest(value: Any, method: Any) -> Any:
    if not isinstance(method, pa.Scalar):
        raise UnsupportedError("digest needs a constant method, such as 'sha256'; a column of methods is not supported")
    digests = _ALGORITHMS.get(method.as_py())
    if digests is None:
        raise pa.ArrowInvalid(f"digest knows {', '.join(_ALGORITHMS)}, not {method.as_py()!r}")
    texts = repeated(value, 1).to_pylist() if isinstance(value, pa.Scalar) else value.to_pylist()
    known = [text.encode() if isinstance(text, str) else text for text in texts if text is not None]
    found = iter(digests(known))
    result = pa.array([None if text is None else next(found) for text in texts], pa.binary())
    return result[0] if isinstance(value, pa.Scalar) else result


def _hash(name: str) -> Callable[[str | bytes], bytes]:
    algorithm = getattr(hashlib, name)
    return lambda value: bytes(algorithm(value.encode() if isinstance(value, str) else value).digest())


FUNCTIONS = [
    Function("digest", (Kind.BYTES, Kind.TEXT), _digest),
    Function("md5", (Kind.BYTES,), rowwise(lambda value: _hash("md5")(value).hex(), pa.string())),
    *(
        Function(name, (Kind.BYTES,), rowwise(_hash(name), pa.binary()))
        for name in ("sha224", "sha256", "sha384", "sha512")
    ),
]
ALIASES: dict[str, str] = {}
