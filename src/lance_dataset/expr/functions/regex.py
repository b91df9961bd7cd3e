"""Regular expression functions. Arrow's engine computes them, in time that is linear in the text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import UnsupportedError
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.regex_syntax import Pattern, rewrite, translated
from lance_dataset.expr.rowwise import per_parameters

__all__ = ["ALIASES", "FUNCTIONS", "is_valid_regex"]

_TEXT, _INTEGER = Kind.TEXT, Kind.INTEGER
#: Characters for private use, one of which marks matches: no text of interest has them all.
_MOST_BYTES = 2**31 - 1
_MARKS = range(0xE000, 0xF900)


def _like(value: pa.Array, pattern: str, flags: str = "") -> pa.Array:
    if "g" in flags:
        raise pa.ArrowInvalid("regexp_like has no option g")
    return pc.match_substring_regex(value, pattern=translated(pattern, flags).text)


@lru_cache(maxsize=256)
def is_valid_regex(pattern: str, flags: str = "") -> bool:
    """Return True if `regexp_like` and `regexp_match` raise no errors with a pattern and flags."""
    try:
        _like(pa.array([""]), pattern, flags)
    except (pa.ArrowInvalid, UnsupportedError):
        return False
    return True


def _behind(value: pa.Array, start: int) -> tuple[pa.Array, pa.Array]:
    """Return the strings from a position on, and whether each string reaches that position."""
    if start < 1:
        raise pa.ArrowInvalid(f"Positions in strings count from 1; {start} is too small")
    if start == 1:
        return value, pc.is_valid(value)
    long_enough = pc.greater_equal(pc.utf8_length(value), pa.scalar(start - 1, pa.int64()))
    return pc.utf8_slice_codeunits(value, min(start - 1, 2**31)), pc.fill_null(long_enough, False)


def _marked(value: pa.Array, pattern: Pattern, *, keep: bool) -> tuple[pa.Array, str]:
    """Return the strings with a mark in place of each match (with `keep`, at both ends of it), and the mark."""
    mark = next((m for m in map(chr, _MARKS) if not pc.any(pc.match_substring(value, m)).as_py()), None)
    if mark is None:
        raise UnsupportedError("the text contains all private use characters, so none is left to mark matches with")
    replacement = f"{mark}\\0{mark}" if keep else mark
    return pc.replace_substring_regex(value, pattern=pattern.text, replacement=replacement), mark


def _count(value: pa.Array, pattern: str, start: int = 1, flags: str = "") -> pa.Array:
    if not pattern:
        return pa.array([0] * len(value), pa.int64())
    rest, found = _behind(value, start)
    texts, mark = _marked(rest, translated(pattern, flags), keep=False)
    return pc.if_else(found, pc.cast(pc.count_substring(texts, mark), pa.int64()), pa.scalar(0, pa.int64()))


def _instr(
    value: pa.Array, pattern: str, start: int = 1, occurrence: int = 1, flags: str = "", group: int = 0
) -> pa.Array:
    """Return the position of the match with number `occurrence`; 0 if there are fewer matches."""
    if occurrence < 1:
        raise pa.ArrowInvalid(f"Occurrences count from 1; {occurrence} is too small")
    if group:
        raise UnsupportedError("regexp_instr finds whole matches; positions of groups are not supported")
    rest, found = _behind(value, start)
    found = pc.and_(found, pc.greater(pc.fill_null(pc.binary_length(rest), 0), 0))  # empty texts have no positions
    texts, mark = _marked(rest, translated(pattern, flags), keep=True)
    place = 2 * occurrence - 1  # texts between matches and the matches alternate

    def position(text: str | None, exists: bool) -> int | None:
        if text is None:
            return None
        parts = text.split(mark) if pattern and exists else []
        return start + sum(map(len, parts[:place])) if place < len(parts) else 0

    rows = zip(texts.to_pylist(), found.to_pylist(), strict=True)
    return pa.array([position(*row) for row in rows], pa.int64())


def _groups(value: pa.Array, pattern: str, flags: str = "") -> pa.Array:
    """Return the groups that took part in the first match, or the whole match without groups; null without a match."""
    known = translated(pattern, flags)
    text = known.text if known.groups else f"(?P<g0>{known.text})"
    found = pc.extract_regex(value, pattern=text)
    # Arrow reports groups that took no part only as empty.
    part_of_match = [_may_be_empty(inner) for inner in known.groups] or [True]
    rows = [
        None if row is None else [t for t, always in zip(row.values(), part_of_match, strict=True) if t or always]
        for row in found.to_pylist()
    ]
    return pa.array(rows, pa.list_(pa.string()))


@lru_cache(maxsize=256)
def _may_be_empty(pattern: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(""), pattern=f"^(?:{pattern})$").as_py())


def _replace(value: pa.Array, pattern: str, replacement: str, flags: str = "") -> pa.Array:
    known = translated(pattern, flags)
    limit = None if known.everywhere else 1
    written = rewrite(replacement, known)
    matches = len(value) if limit else pc.sum(_count(value, pattern, 1, flags.replace("g", ""))).as_py() or 0
    references, literal = written.count("\\"), len(written.encode())
    size = matches * literal + references * (pc.sum(pc.binary_length(value)).as_py() or 0)
    if size > _MOST_BYTES:
        raise pa.ArrowInvalid(
            f"regexp_replace could make strings of {size} bytes in one batch, more than {_MOST_BYTES}"
        )
    return pc.replace_substring_regex(value, pattern=known.text, replacement=written, max_replacements=limit)


def _zero_of_null(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *data: pc.coalesce(kernel(*data), pa.scalar(0, pa.int64()))


FUNCTIONS = [
    Function("regexp_like", (_TEXT, _TEXT, _TEXT), per_parameters(_like, pa.bool_()), optional=1),
    Function(
        "regexp_count",
        (_TEXT, _TEXT, _INTEGER, _TEXT),
        _zero_of_null(per_parameters(_count, pa.int64())),
        optional=2,
    ),
    Function(
        "regexp_instr",
        (_TEXT, _TEXT, _INTEGER, _INTEGER, _TEXT, _INTEGER),
        per_parameters(_instr, pa.int64()),
        optional=4,
    ),
    Function("regexp_match", (_TEXT, _TEXT, _TEXT), per_parameters(_groups, pa.list_(pa.string())), optional=1),
    Function("regexp_replace", (_TEXT, _TEXT, _TEXT, _TEXT), per_parameters(_replace), optional=1),
]
ALIASES: dict[str, str] = {}
