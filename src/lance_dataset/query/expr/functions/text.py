"""String, pattern and digest functions. Positions count from 1, lengths are in characters."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .registry import Function, Kind
from .rowwise import constant, rowwise

__all__ = ["ALIASES", "FUNCTIONS"]

_TEXT, _INTEGER = Kind.TEXT, Kind.INTEGER


def _with_constant(fast: Callable[[Any, str], Any], slow: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """A kernel of two strings that takes the vectorised path when the second is constant."""

    def kernel(value: Any, other: Any) -> Any:
        text = constant(other)
        return slow(value, other) if text is None else fast(value, text)

    return kernel


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
    """Strings joined; null arguments count as empty."""
    target = values[0].type
    empty = pa.scalar("", target)
    return pc.binary_join_element_wise(*(pc.coalesce(value, empty) for value in values), empty)


def _concat_ws(separator: Any, *values: Any) -> Any:
    """The non-null strings joined with a separator."""
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
        return pc.replace_substring(value, pattern=old, replacement=new)
    return rowwise(str.replace)(value, pattern, replacement)


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
        raise pa.ArrowInvalid("split_part counts from 1; 0 is no position")
    place = index - 1 if index > 0 else len(parts) + index
    return parts[place] if 0 <= place < len(parts) else ""


def _substr_index(value: str, separator: str, count: int) -> str:
    if not separator or count == 0:
        return ""
    parts = value.split(separator)
    return separator.join(parts[:count] if count > 0 else parts[count:])


def _initcap(value: str) -> str:
    return re.sub(r"[^\W_]+", lambda word: word.group()[0].upper() + word.group()[1:].lower(), value)


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


def _contains_tokens(value: str, tokens: str) -> bool:
    return set(re.findall(r"[^\W_]+", tokens.lower())) <= set(re.findall(r"[^\W_]+", value.lower()))


def _encode(value: str | bytes, encoding: str) -> str:
    raw = value.encode() if isinstance(value, str) else value
    if encoding.lower() == "hex":
        return raw.hex()
    if encoding.lower() == "base64":
        return base64.b64encode(raw).decode().rstrip("=")
    raise pa.ArrowInvalid(f"encode knows 'hex' and 'base64', not {encoding!r}")


def _digest(name: str) -> Callable[[str | bytes], bytes]:
    return lambda value: hashlib.new(name, value.encode() if isinstance(value, str) else value).digest()


def _md5(value: str | bytes) -> str:
    return _digest("md5")(value).hex()


_REGEX_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}


@lru_cache(maxsize=256)
def _compiled(pattern: str, flags: str) -> re.Pattern[str]:
    options = re.NOFLAG if hasattr(re, "NOFLAG") else re.RegexFlag(0)
    for flag in flags.replace("g", ""):
        if flag not in _REGEX_FLAGS:
            raise pa.ArrowInvalid(f"Unknown regular expression flag {flag!r}; the flags are i, m, s, x and g")
        options |= _REGEX_FLAGS[flag]
    try:
        return re.compile(pattern, options)
    except re.error as error:
        raise pa.ArrowInvalid(f"Invalid regular expression {pattern!r}: {error}") from None


def _regexp_like(value: Any, pattern: Any, flags: Any = None) -> Any:
    text = constant(pattern)
    options = "" if flags is None else constant(flags)
    if text is not None and options is not None and set(options) <= {"i", "m", "s"}:
        return pc.match_substring_regex(value, pattern=f"(?{options}){text}" if options else text)
    search = rowwise(lambda v, p, f="": _compiled(p, f).search(v) is not None, pa.bool_())
    return search(value, pattern) if flags is None else search(value, pattern, flags)


def _regexp_count(value: Any, pattern: Any) -> Any:
    """The number of matches; null strings have none."""
    count = rowwise(lambda text, regex: sum(1 for _ in _compiled(regex, "").finditer(text)), pa.int64())
    return pc.coalesce(count(value, pattern), pa.scalar(0, pa.int64()))


def _regexp_replace(value: str, pattern: str, replacement: str, flags: str = "") -> str:
    template = re.sub(r"\$\{?(\w+)\}?", r"\\g<\1>", replacement)
    return _compiled(pattern, flags).sub(template, value, count=0 if "g" in flags else 1)


def _strpos(value: Any, pattern: str) -> Any:
    return rowwise(lambda v: v.find(pattern) + 1, pa.int32())(value)


FUNCTIONS = [
    Function("length", (Kind.PRINTED,), _length),
    Function("octet_length", (_TEXT,), pc.binary_length),
    Function("bit_length", (_TEXT,), _bit_length),
    Function("ascii", (_TEXT,), rowwise(lambda value: ord(value[0]) if value else 0, pa.int32())),
    Function("chr", (_INTEGER,), rowwise(chr, pa.string())),
    Function("lower", (_TEXT,), pc.utf8_lower),
    Function("upper", (_TEXT,), pc.utf8_upper),
    Function("initcap", (_TEXT,), rowwise(_initcap)),
    Function("btrim", (_TEXT, _TEXT), _trim("both"), optional=1),
    Function("ltrim", (_TEXT, _TEXT), _trim("left"), optional=1),
    Function("rtrim", (_TEXT, _TEXT), _trim("right"), optional=1),
    Function("concat", (Kind.PRINTED,), _concat, variadic=True),
    Function("concat_ws", (_TEXT, Kind.PRINTED), _concat_ws, variadic=True),
    Function(
        "contains",
        (_TEXT, _TEXT),
        _with_constant(
            lambda value, text: pc.match_substring(value, text), rowwise(lambda value, text: text in value, pa.bool_())
        ),
    ),
    Function(
        "starts_with",
        (_TEXT, _TEXT),
        _with_constant(lambda v, t: pc.starts_with(v, t), rowwise(str.startswith, pa.bool_())),
    ),
    Function(
        "ends_with", (_TEXT, _TEXT), _with_constant(lambda v, t: pc.ends_with(v, t), rowwise(str.endswith, pa.bool_()))
    ),
    Function("strpos", (_TEXT, _TEXT), _with_constant(_strpos, rowwise(lambda v, t: v.find(t) + 1, pa.int32()))),
    Function("left", (_TEXT, _INTEGER), rowwise(_left)),
    Function("right", (_TEXT, _INTEGER), rowwise(_right)),
    Function("substr", (_TEXT, _INTEGER, _INTEGER), rowwise(_substr), optional=1),
    Function("lpad", (_TEXT, _INTEGER, _TEXT), rowwise(_pad(left=True)), optional=1),
    Function("rpad", (_TEXT, _INTEGER, _TEXT), rowwise(_pad(left=False)), optional=1),
    Function("repeat", (_TEXT, _INTEGER), rowwise(lambda value, count: value * max(count, 0))),
    Function("replace", (_TEXT, _TEXT, _TEXT), _replace),
    Function("reverse", (_TEXT,), pc.utf8_reverse),
    Function("split_part", (_TEXT, _TEXT, _INTEGER), rowwise(_split_part)),
    Function("substr_index", (_TEXT, _TEXT, _INTEGER), rowwise(_substr_index)),
    Function("translate", (_TEXT, _TEXT, _TEXT), rowwise(_translate)),
    Function("levenshtein", (_TEXT, _TEXT), rowwise(_levenshtein, pa.int32())),
    Function("contains_tokens", (_TEXT, _TEXT), rowwise(_contains_tokens, pa.bool_())),
    Function("to_hex", (_INTEGER,), rowwise(lambda value: f"{value & (2**64 - 1):x}", pa.string())),
    Function("regexp_like", (_TEXT, _TEXT, _TEXT), _regexp_like, optional=1),
    Function("regexp_count", (_TEXT, _TEXT), _regexp_count),
    Function("regexp_replace", (_TEXT, _TEXT, _TEXT, _TEXT), rowwise(_regexp_replace), optional=1),
    Function("encode", (Kind.BYTES, _TEXT), rowwise(_encode, pa.string())),
    Function("md5", (Kind.BYTES,), rowwise(_md5, pa.string())),
    *(
        Function(name, (Kind.BYTES,), rowwise(_digest(name), pa.binary()))
        for name in ("sha224", "sha256", "sha384", "sha512")
    ),
]
ALIASES = {
    "char_length": "length",
    "character_length": "length",
    "trim": "btrim",
    "instr": "strpos",
    "substring": "substr",
    "substring_index": "substr_index",
    "regexp_match": "regexp_like",
}
