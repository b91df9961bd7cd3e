"""Parser of interval literals: ``1 day``, ``1 year 2 months``, ``1.5 hours``, ``1 day 02:03:04``, ``-3 min``."""

from __future__ import annotations

import re
from fractions import Fraction

import pyarrow as pa

__all__ = ["INTERVAL_UNITS", "parse_interval"]

#: Longer texts are rejected: no sensible interval needs more characters, and huge numbers are slow to parse.
_LONGEST = 1000
_SECOND = 10**9
_DAY = 86_400 * _SECOND
#: Nanoseconds of the units that have a fixed length within a day.
_NANOSECONDS = {
    "NANOSECOND": 1, "NANO": 1, "NSEC": 1, "NS": 1,
    "MICROSECOND": 10**3, "MICRO": 10**3, "USEC": 10**3, "US": 10**3,
    "MILLISECOND": 10**6, "MILLI": 10**6, "MSEC": 10**6, "MS": 10**6,
    "SECOND": _SECOND, "SEC": _SECOND, "S": _SECOND,
    "MINUTE": 60 * _SECOND, "MIN": 60 * _SECOND, "M": 60 * _SECOND,
    "HOUR": 3600 * _SECOND, "HR": 3600 * _SECOND, "H": 3600 * _SECOND,
}  # fmt: skip
_DAYS = {"DAY": 1, "D": 1, "WEEK": 7, "W": 7}
_MONTHS = {
    "MONTH": 1, "MON": 1, "QUARTER": 3, "YEAR": 12, "YR": 12, "Y": 12, "DECADE": 120, "CENTURY": 1200,
    "CENTURIE": 1200, "MILLENNIUM": 12_000, "MILLENNIA": 12_000,
}  # fmt: skip
#: Units that may follow the literal, as in ``INTERVAL '1' DAY``.
INTERVAL_UNITS = frozenset(
    name + s
    for name in ("NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH")
    for s in ("", "S")
) | {"QUARTER", "QUARTERS", "YEAR", "YEARS", "DECADE", "DECADES", "CENTURY", "CENTURIES"}
_AMOUNT = re.compile(r"\s*([+-]?\s*(?:\d+(?:\.\d*)?|\.\d+))\s*([A-Za-z]+)")
_CLOCK = re.compile(r"\s*([+-]?)(\d+):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?")
_YEARS_AND_MONTHS = re.compile(r"\s*([+-]?)(\d+)-(\d+)(?!\d)")


def parse_interval(text: str) -> pa.MonthDayNano | None:
    """Return the months, days and nanoseconds of an interval; None if the text is not an interval."""
    if len(text) > _LONGEST:
        return None
    months, days, nanoseconds = Fraction(0), Fraction(0), Fraction(0)
    position, found = 0, False
    while text[position:].strip():
        clock, amount = _CLOCK.match(text, position), _AMOUNT.match(text, position)
        years = _YEARS_AND_MONTHS.match(text, position)
        if years is not None:
            count = int(years.group(2)) * 12 + int(years.group(3))
            months += -count if years.group(1) == "-" else count
            position = years.end()
        elif clock is not None:
            nanoseconds += _clock(clock)
            position = clock.end()
        elif amount is not None:
            parts = _parts(Fraction(amount.group(1).replace(" ", "")), amount.group(2).upper())
            if parts is None:
                return None
            months, days, nanoseconds = months + parts[0], days + parts[1], nanoseconds + parts[2]
            position = amount.end()
        else:
            return None
        found = True
    values = int(months), int(days), int(nanoseconds)
    if not found or abs(values[0]) >= 2**31 or abs(values[1]) >= 2**31 or abs(values[2]) >= 2**63:
        return None
    return pa.MonthDayNano(list(values))


def _clock(match: re.Match[str]) -> Fraction:
    sign = -1 if match.group(1) == "-" else 1
    seconds = int(match.group(2)) * 3600 + int(match.group(3)) * 60 + int(match.group(4) or 0)
    return Fraction(sign * (seconds * _SECOND + int((match.group(5) or "").ljust(9, "0") or 0)))


def _parts(amount: Fraction, word: str) -> tuple[Fraction, Fraction, Fraction] | None:
    """Return an amount of one unit; fractions of months and days carry over as 30 days and 24 hours."""
    for unit in (word, word.removesuffix("S")):
        if unit in _NANOSECONDS:
            return Fraction(0), Fraction(0), amount * _NANOSECONDS[unit]
        if unit in _DAYS:
            return Fraction(0), *_whole(amount * _DAYS[unit], _DAY)
        if unit in _MONTHS:
            months, rest = _whole(amount * _MONTHS[unit], 30)
            return months, *_whole(rest, _DAY)
    return None


def _whole(amount: Fraction, smaller: int) -> tuple[Fraction, Fraction]:
    """Return the whole part, and the rest in a unit of which `smaller` make one."""
    whole = Fraction(int(amount))
    return whole, (amount - whole) * smaller
