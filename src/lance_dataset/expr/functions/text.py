"""String, pattern and digest functions. Positions count from 1, lengths are in characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.array_predicates import contains_text, text_test
from lance_dataset.expr.characters import ALPHANUMERIC, runs_of
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.rowwise import constant, per_parameters, rowwise
from lancecodec.predicates import PREFIX, SUFFIX

__all__ = ["ALIASES", "FUNCTIONS"]

_TEXT, _INTEGER = Kind.TEXT, Kind.INTEGER
_ASCII_WORD = re.compile("[0-9A-Za-z]+")
#: Maximum number of bytes in an array of strings.
_MOST_BYTES = 2**31 - 1


def _length(value: Any) -> Any:
    return pc.utf8_length(value)


def _bit_length(value: Any) -> Any:
    return pc.multiply(pc.binary_length(value), pa.scalar(8, pa.int32()))


def _trim(side: str) -> Callable[..., Any]:
    whole = {"both": pc.utf8_trim, "left": pc.utf8_ltrim, "right": pc.utf8_rtrim}[side]
    strip = {"both": str.strip, "left": str.lstrip, "right": str.rstrip}[side]

    def kernel(value: Any, characters: Any = None) -> Any:
        wanted = " " if characters is None else constant(characters)
        return whole(value, characters=wanted) if wanted else rowwise(strip)(value, characters)

    return kernel


def _concat(*values: Any) -> Any:
    """Join strings; null arguments count as empty."""
    target = values[0].type
    empty = pa.scalar("", target)
    return pc.binary_join_element_wise(*(pc.coalesce(value, empty) for value in values), empty)


def _concat_ws(separator: Any, *values: Any) -> Any:
    """Join the non-null strings with a separator."""
    between = pc.coalesce(separator, pa.scalar("", separator.type))
    lengths = [len(value) for value in (separator, *values) if not isinstance(value, pa.Scalar)]
    rows = zip(*(_values(datum, lengths) for datum in (between, *values)), strict=True)
    texts = [row[0].join(text for text in row[1:] if text is not None) for row in rows]
    if not lengths:
        return pa.scalar(texts[0] if separator.is_valid else None, separator.type)
    return pc.if_else(pc.is_valid(separator), pa.array(texts, separator.type), pa.scalar(None, separator.type))


def _values(datum: Any, lengths: list[int]) -> list[Any]:
    return [datum.as_py()] * (lengths[0] if lengths else 1) if isinstance(datum, pa.Scalar) else datum.to_pylist()


def _replace(value: Any, pattern: Any, replacement: Any) -> Any:
    old, new = constant(pattern), constant(replacement)
    if old and new is not None:
        _require_room("replace", _sum(pc.count_substring(value, old)) * (len(new.encode()) - len(old.encode())))
        return pc.replace_substring(value, pattern=old, replacement=new)
    return rowwise(str.replace)(value, pattern, replacement)


def _require_room(name: str, size: float) -> None:
    """Raise if the strings of a batch would not fit an array."""
    if size > _MOST_BYTES:
        raise pa.ArrowInvalid(f"{name} would make strings of {size:.3g} bytes in one batch, more than {_MOST_BYTES}")


def _sum(*factors: Any) -> float:
    """Return the sum over all rows of a product; nulls count as 0."""
    product: Any = 1.0
    for factor in factors:
        filled = pc.fill_null(pc.cast(factor, pa.float64(), safe=False), 0.0)
        product = product * (filled.as_py() if isinstance(filled, pa.Scalar) else filled.to_numpy(zero_copy_only=False))
    return float(np.sum(np.maximum(product, 0.0)))


def _repeat(value: Any, count: Any) -> Any:
    _require_room("repeat", _sum(pc.binary_length(value), count))
    return rowwise(lambda text, times: text * max(times, 0))(value, count)


def _padded(name: str, *, left: bool) -> Callable[..., Any]:
    pad = rowwise(_pad(left))

    def kernel(value: Any, width: Any, *filler: Any) -> Any:
        counts = [len(datum) for datum in (value, *filler) if not isinstance(datum, pa.Scalar)]
        rows = counts[0] if counts and isinstance(width, pa.Scalar) else 1
        _require_room(name, rows * _sum(width))
        return pad(value, width, *filler)

    return kernel


def _left(value: str, count: int) -> str:
    return value[:count]


def _right(value: str, count: int) -> str:
    return value[-count:] if count > 0 else value[-count:] if count else ""


def _substr(value: str, start: int, length: int | None = None) -> str:
    begin = start - 1
    end = None if length is None else max(begin + length, 0)
    return value[max(begin, 0) : end]


def _pad(left: bool) -> Callable[..., str]:
    def pad(value: str, width: int, filler: str = " ") -> str:
        if width <= len(value) or not filler:
            return value[: max(width, 0)]
        missing = width - len(value)
        filling = (filler * (missing // len(filler) + 1))[:missing]
        return filling + value if left else value + filling

    return pad


def _split_part(value: str, separator: str, index: int) -> str:
    parts = value.split(separator) if separator else [value]
    if index == 0:
        raise pa.ArrowInvalid("split_part counts from 1; 0 is not a position")
    place = index - 1 if index > 0 else len(parts) + index
    return parts[place] if 0 <= place < len(parts) else ""


def _substr_index(value: str, separator: str, count: int) -> str:
    if not separator or count == 0:
        return ""
    parts = value.split(separator)
    return separator.join(parts[:count] if count > 0 else parts[count:])


def _in_case(fast: Callable[[Any], Any], slow: Callable[[str], str]) -> Callable[[Any], Any]:
    """Return a kernel that changes the case of letters, also of those that become several letters, unlike Arrow's."""
    exact = rowwise(slow)

    def kernel(value: Any) -> Any:
        plain = pc.string_is_ascii(value)
        if isinstance(value, pa.Scalar):
            return fast(value) if plain.as_py() else exact(value)
        return fast(value) if pc.all(plain).as_py() in (True, None) else exact(value)

    return kernel


def _initcap(value: str) -> str:
    return re.sub(r"[^\W_]+", lambda word: word.group()[0].upper() + word.group()[1:].lower(), value)


def _holds(test: Callable[[pa.Array, bytes], pa.Array]) -> Callable[..., Any]:
    """Return a kernel for a test of the codec core, which does not accept an empty text: all strings contain it."""

    def holds(value: pa.Array, text: str) -> pa.Array:
        return test(value, text.encode()) if text else pc.if_else(pc.is_valid(value), True, pa.scalar(None, pa.bool_()))

    return per_parameters(holds, pa.bool_())


def _translate(value: str, old: str, new: str) -> str:
    table: dict[int, int | None] = {}
    for place, character in enumerate(old):
        table.setdefault(ord(character), ord(new[place]) if place < len(new) else None)
    return value.translate(table)


def _levenshtein(left: str, right: str) -> int:
    previous = list(range(len(right) + 1))
    for row, character in enumerate(left, 1):
        current = [row]
        for column, other in enumerate(right, 1):
            current.append(min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (character != other)))
        previous = current
    return previous[-1]


def _contains_tokens(values: pa.Array, tokens: str) -> pa.Array:
    words = set(_words(tokens))
    found = pc.is_valid(values)
    for word in words:
        found = pc.and_(found, pc.fill_null(contains_text(values, word.encode()), False))
    # Only texts that contain the words anywhere are divided.
    mask = found.to_numpy(zero_copy_only=False).copy()
    places = np.flatnonzero(mask) if words else np.empty(0, np.int64)
    texts = values.take(pa.array(places)).to_pylist()
    mask[places] = [words <= set(_words(text)) for text in texts]
    return pa.array(mask, pa.bool_(), mask=pc.is_null(values).to_numpy(zero_copy_only=False))


def _words(text: str) -> list[str]:
    # A pattern of a few characters is several times faster.
    return (_ASCII_WORD if text.isascii() else runs_of(ALPHANUMERIC)).findall(text)


def _character(value: int) -> str:
    if not 0 <= value <= 0x10FFFF or 0xD800 <= value <= 0xDFFF:
        raise pa.ArrowInvalid(f"chr: {value} is not a Unicode character")
    return chr(value)


def _to_hex(value: Any) -> Any:
    width = 2**64 if not pa.types.is_unsigned_integer(value.type) else 2**value.type.bit_width
    return rowwise(lambda number: f"{number % width:x}", pa.string())(value)


def _find_in_set(value: str, listed: str) -> int:
    items = listed.split(",") if listed or not value else []
    return items.index(value) + 1 if value in items else 0


def _overlay(value: str, replacement: str, start: int, length: int | None = None) -> str:
    """Replace a part of the value, as long as the replacement unless a length is given."""
    begin = max(start - 1, 0)
    end = max(start - 1 + (len(replacement) if length is None else length), begin)
    return value[:begin] + replacement + value[end:]


def _position(value: str, pattern: str) -> int:
    return value.find(pattern) + 1


def _strpos(value: Any, pattern: Any) -> Any:
    width = pa.int64() if pa.types.is_large_string(value.type) else pa.int32()
    return rowwise(_position, width)(value, pattern)


def _integer_only(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    if not pa.types.is_integer(types[0]):
        raise pa.ArrowInvalid(f"to_hex needs an integer, not {types[0]}")
    return types


FUNCTIONS = [
    Function("length", (Kind.PRINTED,), _length),
    Function("octet_length", (_TEXT,), pc.binary_length),
    Function("bit_length", (_TEXT,), _bit_length),
    Function("ascii", (_TEXT,), rowwise(lambda value: ord(value[0]) if value else 0, pa.int32())),
    Function("chr", (_INTEGER,), rowwise(_character, pa.string())),
    Function("lower", (_TEXT,), _in_case(pc.ascii_lower, str.lower)),
    Function("upper", (_TEXT,), _in_case(pc.ascii_upper, str.upper)),
    Function("initcap", (_TEXT,), rowwise(_initcap)),
    Function("btrim", (_TEXT, _TEXT), _trim("both"), optional=1),
    Function("ltrim", (_TEXT, _TEXT), _trim("left"), optional=1),
    Function("rtrim", (_TEXT, _TEXT), _trim("right"), optional=1),
    Function("concat", (Kind.PRINTED,), _concat, variadic=True),
    Function("concat_ws", (_TEXT, Kind.PRINTED), _concat_ws, variadic=True),
    Function("contains", (_TEXT, _TEXT), _holds(contains_text)),
    Function("starts_with", (_TEXT, _TEXT), _holds(lambda value, text: text_test(value, text, PREFIX))),
    Function("ends_with", (_TEXT, _TEXT), _holds(lambda value, text: text_test(value, text, SUFFIX))),
    Function("strpos", (_TEXT, _TEXT), _strpos),
    Function("left", (Kind.PRINTED, _INTEGER), rowwise(_left)),
    Function("right", (Kind.PRINTED, _INTEGER), rowwise(_right)),
    Function("substr", (_TEXT, _INTEGER, _INTEGER), rowwise(_substr), optional=1),
    Function("lpad", (Kind.PRINTED, _INTEGER, _TEXT), _padded("lpad", left=True), optional=1),
    Function("rpad", (Kind.PRINTED, _INTEGER, _TEXT), _padded("rpad", left=False), optional=1),
    Function("repeat", (_TEXT, _INTEGER), _repeat),
    Function("replace", (_TEXT, _TEXT, _TEXT), _replace),
    Function("reverse", (Kind.PRINTED,), pc.utf8_reverse),
    Function("split_part", (_TEXT, _TEXT, _INTEGER), rowwise(_split_part)),
    Function("substr_index", (_TEXT, _TEXT, _INTEGER), rowwise(_substr_index)),
    Function("translate", (_TEXT, _TEXT, _TEXT), rowwise(_translate)),
    Function("levenshtein", (_TEXT, _TEXT), rowwise(_levenshtein, pa.int32())),
    Function("contains_tokens", (_TEXT, _TEXT), per_parameters(_contains_tokens, pa.bool_())),
    Function("to_hex", (Kind.NUMBER,), _to_hex, coercion=_integer_only),
    Function("find_in_set", (_TEXT, _TEXT), rowwise(_find_in_set, pa.int32())),
    Function("overlay", (_TEXT, _TEXT, _INTEGER, _INTEGER), rowwise(_overlay), optional=1),
]
ALIASES = {
    "char_length": "length",
    "character_length": "length",
    "trim": "btrim",
    "instr": "strpos",
    "substring": "substr",
    "substring_index": "substr_index",
}
