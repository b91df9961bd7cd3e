"""Formatting and parsing of moments with format strings such as ``%Y-%m-%d %H:%M:%S%.f``, to the nanosecond."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

__all__ = ["Moment", "format_moment", "parse_moment"]

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = tuple(calendar.month_name)[1:]
_SHORTHANDS = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "x": "%m/%d/%y", "X": "%H:%M:%S",
               "r": "%I:%M:%S %p", "c": "%a %b %e %H:%M:%S %Y", "v": "%e-%b-%Y", "h": "%b"}  # fmt: skip
_SPECIFIER = re.compile(r"%([-_0]?)(\.[369]f|\.f|[369]f|:{1,3}z|#z|.)", re.DOTALL)


@dataclass(frozen=True)
class Moment:
    """A date with a time of day.

    Attributes
    ----------
    date
        The day; None for a time alone.
    second
        Seconds of the day; None for a date alone.
    nanosecond
        Nanoseconds of the second.
    offset
        Seconds east of UTC; None without a time zone.
    """

    date: datetime.date | None
    second: int | None
    nanosecond: int = 0
    offset: int | None = None

    def epoch(self) -> int:
        """Return the seconds since the epoch of the local time."""
        days = 0 if self.date is None else self.date.toordinal() - 719_163
        return days * 86_400 + (self.second or 0)


def _wrong(pattern: str) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(f"The format {pattern!r} does not fit the value")


def format_moment(moment: Moment, pattern: str) -> str:
    """Format a moment.

    Raises
    ------
    pyarrow.ArrowInvalid
        A specifier is unknown, or the moment lacks the requested part.
    """
    parts: list[str] = []
    place = 0
    for match in _SPECIFIER.finditer(pattern):
        parts.append(pattern[place : match.start()])
        parts.append(_field(moment, match.group(2), match.group(1), pattern))
        place = match.end()
    rest = pattern[place:]
    if "%" in rest:
        raise _wrong(pattern)
    return "".join(parts) + rest


def _field(moment: Moment, code: str, padding: str, pattern: str) -> str:
    if code in _SHORTHANDS:
        return format_moment(moment, _SHORTHANDS[code])
    if code in _LITERALS:
        return _LITERALS[code]
    if code in _OF_DATE and moment.date is not None:
        return _padded(_OF_DATE[code](moment.date), padding)
    if code in _OF_TIME and moment.second is not None:
        return _padded(_OF_TIME[code](moment.second, moment.nanosecond), padding)
    if code in ("z", ":z", "::z", "#z", "Z", "+") and moment.offset is not None:
        return _zone(moment, code)
    if code == "s" and moment.date is not None and moment.second is not None:
        return str(moment.epoch() - (moment.offset or 0))
    raise _wrong(pattern)


_LITERALS = {"%": "%", "n": "\n", "t": "\t"}


def _padded(text: str, padding: str) -> str:
    digits = text.strip().lstrip("0") or "0"
    if not padding or not text.strip().isdigit():
        return text
    return {"-": digits, "_": digits.rjust(len(text)), "0": digits.rjust(len(text), "0")}[padding]


_OF_DATE: dict[str, Callable[[datetime.date], str]] = {
    "Y": lambda d: f"{d.year:04d}",
    "C": lambda d: f"{d.year // 100:02d}",
    "y": lambda d: f"{d.year % 100:02d}",
    "m": lambda d: f"{d.month:02d}",
    "b": lambda d: _MONTHS[d.month - 1][:3],
    "B": lambda d: _MONTHS[d.month - 1],
    "d": lambda d: f"{d.day:02d}",
    "e": lambda d: f"{d.day:2d}",
    "a": lambda d: _DAYS[d.weekday()][:3],
    "A": lambda d: _DAYS[d.weekday()],
    "w": lambda d: str((d.weekday() + 1) % 7),
    "u": lambda d: str(d.isoweekday()),
    "U": lambda d: f"{(_day_of_year(d) + 6 - (d.weekday() + 1) % 7) // 7:02d}",
    "W": lambda d: f"{(_day_of_year(d) + 6 - d.weekday()) // 7:02d}",
    "G": lambda d: f"{d.isocalendar()[0]:04d}",
    "g": lambda d: f"{d.isocalendar()[0] % 100:02d}",
    "V": lambda d: f"{d.isocalendar()[1]:02d}",
    "j": lambda d: f"{_day_of_year(d):03d}",
    "q": lambda d: str((d.month + 2) // 3),
}
_OF_TIME: dict[str, Callable[[int, int], str]] = {
    "H": lambda s, n: f"{s // 3600:02d}",
    "k": lambda s, n: f"{s // 3600:2d}",
    "I": lambda s, n: f"{(s // 3600 + 11) % 12 + 1:02d}",
    "l": lambda s, n: f"{(s // 3600 + 11) % 12 + 1:2d}",
    "P": lambda s, n: "pm" if s >= 43_200 else "am",
    "p": lambda s, n: "PM" if s >= 43_200 else "AM",
    "M": lambda s, n: f"{s // 60 % 60:02d}",
    "S": lambda s, n: f"{s % 60:02d}",
    "f": lambda s, n: f"{n:09d}",
    ".f": lambda s, n: _fraction(n),
    ".3f": lambda s, n: f".{n // 10**6:03d}",
    ".6f": lambda s, n: f".{n // 10**3:06d}",
    ".9f": lambda s, n: f".{n:09d}",
    "3f": lambda s, n: f"{n // 10**6:03d}",
    "6f": lambda s, n: f"{n // 10**3:06d}",
    "9f": lambda s, n: f"{n:09d}",
}


def _day_of_year(day: datetime.date) -> int:
    return day.timetuple().tm_yday


def _fraction(nanosecond: int) -> str:
    if nanosecond == 0:
        return ""
    for digits, unit in ((3, 10**6), (6, 10**3)):
        if nanosecond % unit == 0:
            return f".{nanosecond // unit:0{digits}d}"
    return f".{nanosecond:09d}"


def _zone(moment: Moment, code: str) -> str:
    offset = moment.offset or 0
    sign, rest = ("-" if offset < 0 else "+"), abs(offset)
    hours, minutes, seconds = rest // 3600, rest // 60 % 60, rest % 60
    if code == "+":
        return format_moment(moment, "%Y-%m-%dT%H:%M:%S%.f%:z")
    if code in ("z", "#z"):
        return f"{sign}{hours:02d}{minutes:02d}"
    return f"{sign}{hours:02d}:{minutes:02d}" + (f":{seconds:02d}" if code == "::z" else "")


# -- reading -------------------------------------------------------------------------------------------------------

_PATTERNS = {
    "Y": r"[+-]?\d{1,9}", "C": r"\d{1,2}", "y": r"\d{1,2}", "m": r"\d{1,2}", "d": r"\s*\d{1,2}", "e": r"\s*\d{1,2}",
    "H": r"\s*\d{1,2}", "k": r"\s*\d{1,2}", "I": r"\s*\d{1,2}", "l": r"\s*\d{1,2}", "M": r"\d{1,2}", "S": r"\d{1,2}",
    "j": r"\d{1,3}", "f": r"\d{1,9}", ".f": r"(?:\.\d+)?", ".3f": r"\.\d{3}", ".6f": r"\.\d{6}", ".9f": r"\.\d{9}",
    "3f": r"\d{3}", "6f": r"\d{6}", "9f": r"\d{9}", "p": r"[AaPp][Mm]", "P": r"[AaPp][Mm]", "s": r"-?\d+",
    "b": r"[A-Za-z]{3}", "B": r"[A-Za-z]{3,9}", "a": r"[A-Za-z]{3}", "A": r"[A-Za-z]{6,9}", "w": r"\d", "u": r"\d",
    "z": r"\s*[+-]\d{2}:?\d{2}", ":z": r"\s*[+-]\d{2}:?\d{2}", "#z": r"\s*(?:[+-]\d{2}(?::?\d{2})?|Z)", "Z": r"\S+",
    "V": r"\d{1,2}", "G": r"\d{4}", "U": r"\d{1,2}", "W": r"\d{1,2}",
}  # fmt: skip


def parse_moment(text: str, pattern: str) -> Moment | None:
    """Parse a moment in a format; None if the text does not fit it.

    Raises
    ------
    pyarrow.ArrowInvalid
        The format has an unknown specifier.
    """
    expression, codes = _reader(pattern)
    match = re.fullmatch(expression, text)
    if match is None:
        return None
    found = dict(zip(codes, match.groups(), strict=True))
    try:
        return _moment(found)
    except (ValueError, KeyError):
        return None


def _reader(pattern: str) -> tuple[str, list[str]]:
    """Return a regular expression with one group for each specifier, and the specifiers."""
    for code, longer in _SHORTHANDS.items():
        pattern = re.sub(rf"(?<!%)((?:%%)*)%{code}", rf"\g<1>{longer}", pattern)
    parts: list[str] = []
    codes: list[str] = []
    place = 0
    for match in _SPECIFIER.finditer(pattern):
        parts.append(_verbatim(pattern[place : match.start()]))
        code = match.group(2)
        if code in _LITERALS:
            parts.append(re.escape(_LITERALS[code]))
        elif code in _PATTERNS:
            parts.append(f"({_PATTERNS[code]})")
            codes.append(code)
        elif code == "+":
            inner, inside = _reader("%Y-%m-%dT%H:%M:%S%.f%#z")
            parts.append(inner)
            codes.extend(inside)
        else:
            raise _wrong(pattern)
        place = match.end()
    return "".join(parts) + _verbatim(pattern[place:]), codes


def _verbatim(text: str) -> str:
    """Return a regular expression for literal text of a format; a space stands for any number of spaces."""
    return "".join(r"\s*" if character.isspace() else re.escape(character) for character in text)


def _moment(found: dict[str, str]) -> Moment:
    offset = next((_offset(found[code]) for code in ("z", ":z", "#z") if code in found), None)
    if "s" in found:
        seconds = int(found["s"]) + (offset or 0)
        day = datetime.date(1970, 1, 1) + datetime.timedelta(days=seconds // 86_400)
        return Moment(day, seconds % 86_400, _nanoseconds(found), offset)
    return Moment(_date(found), _second(found), _nanoseconds(found), offset)


def _date(found: dict[str, str]) -> datetime.date | None:
    if "Y" in found:
        year = int(found["Y"])
    elif "y" in found:
        short = int(found["y"])
        year = int(found["C"]) * 100 + short if "C" in found else short + (1900 if short >= 70 else 2000)
    elif "G" in found and "V" in found:
        return datetime.date.fromisocalendar(int(found["G"]), int(found["V"]), int(found.get("u", "1")))
    else:
        return None
    if "j" in found:
        return datetime.date(year, 1, 1) + datetime.timedelta(days=int(found["j"]) - 1)
    day = int(found["d"] if "d" in found else found["e"])
    return datetime.date(year, _month(found), day)


def _month(found: dict[str, str]) -> int:
    if "m" in found:
        return int(found["m"])
    name = (found["b"] if "b" in found else found["B"])[:3].capitalize()
    return [month[:3] for month in _MONTHS].index(name) + 1


def _second(found: dict[str, str]) -> int | None:
    hours = next((int(found[code]) for code in ("H", "k") if code in found), None)
    if hours is None:
        half = next((int(found[code]) for code in ("I", "l") if code in found), None)
        if half is None:
            return None
        if not 1 <= half <= 12:
            raise ValueError(half)
        hours = half % 12 + (12 if found.get("p", found.get("P", "am")).lower() == "pm" else 0)
    if "M" not in found:
        return None
    minutes, seconds = int(found["M"]), int(found.get("S", "0"))
    if hours > 23 or minutes > 59 or seconds > 60:
        raise ValueError(hours)
    return hours * 3600 + minutes * 60 + min(seconds, 59)


def _nanoseconds(found: dict[str, str]) -> int:
    digits = next((found[code] for code in (".f", ".3f", ".6f", ".9f", "3f", "6f", "9f") if code in found), "")
    if not digits and "f" in found:
        return int(found["f"])
    return int(digits.lstrip(".").ljust(9, "0")[:9] or 0)


def _offset(text: str) -> int:
    text = text.strip()
    if text == "Z":
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    return (-1 if text[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
