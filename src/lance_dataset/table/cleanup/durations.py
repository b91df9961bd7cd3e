"""Durations as text, such as ``14d``, ``1h 30m`` or ``1year 2months``."""

from __future__ import annotations

import re
from fractions import Fraction

from lance_dataset.errors import InvalidInputError

__all__ = ["format_duration", "parse_duration"]

_SECOND = 1_000_000_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
#: Mean month and year of the Julian calendar, rounded as in the texts of other programs.
_MONTH = 2_630_016 * _SECOND
_YEAR = 31_557_600 * _SECOND

_NAMES: dict[int, tuple[str, ...]] = {
    1: ("ns", "nsec", "nanos"),
    1_000: ("us", "µs", "usec", "micros"),
    1_000_000: ("ms", "msec", "millis"),
    _SECOND: ("s", "sec", "secs", "second", "seconds"),
    _MINUTE: ("m", "min", "mins", "minute", "minutes"),
    _HOUR: ("h", "hr", "hrs", "hour", "hours"),
    _DAY: ("d", "day", "days"),
    7 * _DAY: ("w", "wk", "wks", "week", "weeks"),
    _MONTH: ("M", "month", "months"),
    _YEAR: ("y", "yr", "yrs", "year", "years"),
}
_UNITS = {name: nanos for nanos, names in _NAMES.items() for name in names}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\W\d_]*)\s*")
#: Parts of a formatted duration. The long names have a plural with s.
_WRITTEN = (
    (_YEAR, "year", True),
    (_MONTH, "month", True),
    (_DAY, "day", True),
    (_HOUR, "h", False),
    (_MINUTE, "m", False),
    (_SECOND, "s", False),
)
_MAX_SECONDS = 1 << 64


def parse_duration(text: str) -> int:
    """Return the duration that a text describes.

    Parameters
    ----------
    text
        Numbers with units, such as ``14d``, ``1h 30m`` or ``1.5s``, which are added up. Units range from ``ns`` to
        ``years`` (``M`` is a month, ``m`` a minute). A single ``0`` needs no unit.

    Returns
    -------
    int
        Nanoseconds.

    Raises
    ------
    InvalidInputError
        The text is not a duration, or it is longer than 2**64 seconds.
    """
    if text.strip() == "0":
        return 0
    total, position = Fraction(0), 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise InvalidInputError(f"duration {text!r}: expected a number at character {position}, as in '1h 30m'")
        number, unit = part.groups()
        if unit not in _UNITS:
            known = ", ".join(names[0] for names in _NAMES.values())
            what = f"{unit!r} is not a unit of time" if unit else f"the number {number} needs a unit"
            raise InvalidInputError(f"duration {text!r}: {what}; the units are {known} and longer names of them")
        total += Fraction(number) * _UNITS[unit]
        position = part.end()
    if not text.strip():
        raise InvalidInputError("a duration must not be empty; write it as '14d' or '1h 30m'")
    if total >= _MAX_SECONDS * _SECOND:
        raise InvalidInputError(f"duration {text!r} is too long")
    return int(total)


def format_duration(seconds: int) -> str:
    """Format a duration, largest unit first.

    Parameters
    ----------
    seconds
        Whole seconds, not negative.

    Returns
    -------
    str
        Such as ``14days`` or ``1h 30m``. Zero is ``0s``.
    """
    parts, rest = [], seconds * _SECOND
    for unit, name, has_plural in _WRITTEN:
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count}{name}{'s' if has_plural and count > 1 else ''}")
    return " ".join(parts) or "0s"
