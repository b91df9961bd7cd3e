r"""Translation of regular expressions as users write them into the syntax of RE2, the engine of Arrow.

Both the syntax of the reference and RE2 leave out whatever takes more than linear time (back-references, look-around).
They differ in ``\d``, ``\w`` and ``\s``, which are Unicode in the reference and ASCII in RE2. RE2 also lacks the layout
flag ``x``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa

from lance_dataset.errors import UnsupportedError
from lance_dataset.late_dataclass import dataclass

__all__ = ["Pattern", "rewrite", "translated"]

_FLAGS = "imsxUg"
_WORD = r"\p{L}\p{M}\p{Nd}\p{Pc}"
_SPACE = r"\s\x0b\x85\p{Z}"
_OUTSIDE = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]"} | {
    r"\s": f"[{_SPACE}]",
    r"\S": f"[^{_SPACE}]",
}
_INSIDE = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": _WORD, r"\s": _SPACE}
_PIECE = re.compile(
    r"\\[pPx]\{[^}]*\} | \\.? | \[\^?\]? | \(\?P?<[A-Za-z_]\w*> | \(\?[a-zA-Z-]*[:)] | \( | .", re.VERBOSE | re.DOTALL
)
_PIECE_OF_CLASS = re.compile(r"\\[pPx]\{[^}]*\}|\\.?|\[:\^?\w+:\]|.", re.DOTALL)
_REFERENCE = re.compile(r"\\(\d+)|\$\{(\w+)\}|\$(\w+)|\$\$|\\")
#: RE2 substitutes at most this number of groups.
_GROUPS_OF_REWRITE = 9


@dataclass(frozen=True)
class Pattern:
    """An expression for RE2.

    Attributes
    ----------
    text
        The expression, in which the capturing groups are named `g1`, `g2` and so on.
    groups
        The expressions inside the capturing groups, in order.
    names
        Numbers of the groups that have a name.
    everywhere
        True if flag ``g`` is given.
    """

    text: str
    groups: tuple[str, ...]
    names: dict[str, int]
    everywhere: bool


@lru_cache(maxsize=256)
def translated(pattern: str, flags: str = "") -> Pattern:
    """Translate a pattern with its flags.

    Raises
    ------
    pyarrow.ArrowInvalid
        A flag is unknown. Arrow reports other errors in the pattern when it compiles it.
    UnsupportedError
        Part of a character class cannot be expressed in RE2.
    """
    unknown = sorted(set(flags) - set(_FLAGS))
    if unknown:
        raise pa.ArrowInvalid(f"Unknown regular expression flag {unknown[0]!r}; the flags are {', '.join(_FLAGS)}")
    pieces: list[str] = []
    opened: list[tuple[int, int]] = []
    spans: dict[int, tuple[int, int]] = {}
    names: dict[str, int] = {}
    count = 0
    for piece in _pieces(pattern, "x" in flags):
        if piece == ")" and opened:
            number, start = opened.pop()
            spans[number] = start, len(pieces)
        elif piece == "(" or (piece.endswith(">") and piece.startswith("(?")):
            count += 1
            if piece != "(":
                names[piece[piece.index("<") + 1 : -1]] = count
            piece = f"(?P<g{count}>"
            opened.append((count, len(pieces) + 1))
        elif piece.startswith("(?") and piece.endswith(":"):
            opened.append((0, 0))
        pieces.append(piece)
    spans.pop(0, None)
    groups = tuple("".join(pieces[slice(*spans[number])]) for number in sorted(spans))
    options = "".join(flag for flag in "imsU" if flag in flags)
    return Pattern((f"(?{options})" if options else "") + "".join(pieces), groups, names, "g" in flags)


def _pieces(pattern: str, layout: bool) -> Iterator[str]:
    """Yield escapes, brackets and characters; with `layout`, without blanks and comments."""
    at, in_class = 0, False
    while at < len(pattern):
        match = (_PIECE_OF_CLASS if in_class else _PIECE).match(pattern, at)
        assert match is not None  # every character is a piece
        piece, at = match.group(), match.end()
        if piece.startswith("\\"):
            if in_class and piece in (r"\W", r"\S"):
                raise UnsupportedError(f"{piece} inside a character class is not supported: {pattern!r}")
            yield (_INSIDE if in_class else _OUTSIDE).get(piece, piece)
            continue
        if layout and piece.isspace():
            continue  # in classes too
        if in_class:
            in_class = piece != "]"
            piece = f"\\{piece}" if piece in "()" else piece  # no group
        elif piece.startswith("["):
            in_class = True
        elif layout and piece == "#":
            line = pattern.find("\n", at)
            at = len(pattern) if line < 0 else line
            continue
        yield piece


def rewrite(replacement: str, pattern: Pattern) -> str:
    r"""Return the replacement for RE2: ``\1``, ``$1``, ``${1}`` and ``$name`` are groups, or empty; ``$$`` is a $.

    Raises
    ------
    UnsupportedError
        The replacement refers to a group after the ninth.
    """

    def group(reference: re.Match[str]) -> str:
        if reference.group() == "\\":
            return r"\\"
        name = next((part for part in reference.groups() if part is not None), None)
        if name is None:
            return "$"
        number = (
            int(name[:9]) if name.isascii() and name.isdigit() else pattern.names.get(name, len(pattern.groups) + 1)
        )
        if number > len(pattern.groups):
            return ""
        if number > _GROUPS_OF_REWRITE:
            raise UnsupportedError(f"regexp_replace refers to group {number}; it knows the first {_GROUPS_OF_REWRITE}")
        return f"\\{number}"

    return _REFERENCE.sub(group, replacement)
