"""Calls as text, made from templates and from lists of typical and hostile arguments."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

_PLACE = re.compile(r"\$([a-z_]+)")


@dataclass(frozen=True)
class Group:
    """Calls of one subject.

    Parameters
    ----------
    subject
        Name of the subject.
    table
        Name of the table that is open as ``ds`` in the calls.
    calls
        Expressions of Python.
    changes
        True if each call gets a copy of the table, which is compared afterwards, too.
    """

    subject: str
    table: str
    calls: tuple[str, ...]
    changes: bool = False


def expand(template: str, cap: int = 200, **lists: Sequence[str]) -> list[str]:
    """Return a template with every combination of arguments, or with ``cap`` of them, which cover all arguments.

    Parameters
    ----------
    template
        Expression with places such as ``$columns``.
    cap
        Maximum number of calls.
    lists
        Arguments as text, by place. Those that begin with ``!`` are expected to be refused: a call has one at most,
        since of two errors either may come first.
    """
    names = list(dict.fromkeys(_PLACE.findall(template)))
    total = math.prod(len(lists[name]) for name in names)
    if total <= cap:
        chosen = [each for each in itertools.product(*(lists[name] for name in names)) if _hostile(each) < 2]
    else:
        chosen = _drawn(random.Random(template), [lists[name] for name in names], cap)
    texts = []
    for arguments in chosen:
        by_name = {name: text.removeprefix("!") for name, text in zip(names, arguments, strict=True)}
        texts.append(_PLACE.sub(lambda match, found=by_name: found[match[1]], template))
    return list(dict.fromkeys(texts))


def _hostile(arguments: Sequence[str]) -> int:
    return sum(text.startswith("!") for text in arguments)


def _drawn(draw: random.Random, lists: Sequence[Sequence[str]], cap: int) -> list[list[str]]:
    """Return arguments that are drawn so that each is there about as often as any other."""
    columns = []
    for texts in lists:
        repeated = [texts[i % len(texts)] for i in range(cap)]
        draw.shuffle(repeated)
        columns.append(repeated)
    chosen = [list(each) for each in zip(*columns, strict=True)]
    for arguments in chosen:
        while _hostile(arguments) > 1:
            place = next(i for i, text in enumerate(arguments) if text.startswith("!"))
            arguments[place] = draw.choice([text for text in lists[place] if not text.startswith("!")])
    return chosen


def each(template: str, arguments: Sequence[str]) -> list[str]:
    """Return a template with each argument at its place ``$x``."""
    return expand(template, len(arguments), x=arguments)
