"""Argument checks shared by the public calls."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import numpy as np

from lance_dataset.errors import (
    InvalidInputError,
    OutOfRangeError,
    UnsupportedError,
    VersionNotFoundError,
    WrongTypeError,
)

__all__ = [
    "check_count",
    "check_duration",
    "check_order",
    "check_texts",
    "checked_integer",
    "given",
    "moment_of",
    "refuse",
    "version_number",
]


def version_number(version: object) -> int:
    """Return a version number given by a user. Tags and branches are not accepted."""
    if isinstance(version, bool) or not isinstance(version, int | np.integer):
        if isinstance(version, str | tuple):
            raise WrongTypeError(f"give a version number, not {version!r}; tags.get_version returns that of a tag")
        raise WrongTypeError(f"a version must be a number, not {version!r}")
    if version < 0:
        raise VersionNotFoundError(f"version {version} does not exist; versions count from 1")
    return int(version)


def moment_of(asof: object) -> dt.datetime:
    """Convert a datetime (also a pandas Timestamp), a date or ISO text to a datetime."""
    if isinstance(asof, str):
        try:
            # Python 3.10 does not know the Z of UTC
            return dt.datetime.fromisoformat(f"{asof[:-1]}+00:00" if asof.endswith(("Z", "z")) else asof)
        except ValueError as error:
            raise InvalidInputError(
                f"asof {asof!r} is not an ISO date or time, such as '2026-01-31 12:00:00'"
            ) from error
    if isinstance(asof, dt.datetime):
        return _plain_datetime(asof)
    if isinstance(asof, dt.date):
        return dt.datetime(asof.year, asof.month, asof.day)
    raise WrongTypeError(f"asof must be a datetime, a date or ISO text, not {type(asof).__name__}")


def _plain_datetime(moment: dt.datetime) -> dt.datetime:
    """Convert a pandas Timestamp to a datetime. A naive Timestamp has no ``astimezone``, and NaT is not a time."""
    if type(moment) is dt.datetime:
        return moment
    if moment != moment:
        raise InvalidInputError(f"asof {moment!r} is not a time")
    date, time = (moment.year, moment.month, moment.day), (moment.hour, moment.minute, moment.second)
    return dt.datetime(*date, *time, moment.microsecond, moment.tzinfo, fold=moment.fold)


def check_count(name: str, value: object) -> None:
    """Raise an error unless the value is a non-negative integer."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise WrongTypeError(f"{name} must be an integer, not {type(value).__name__}")
    if value < 0:
        raise OutOfRangeError(f"{name.capitalize()} must be non-negative, got {value}")


def checked_integer(name: str, value: object, bits: int = 64) -> int:
    """Return a number as a Python integer.

    Raises
    ------
    TypeError
        The value is not an integer.
    OutOfRangeError
        The value is negative or does not fit `bits` bits.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise WrongTypeError(f"{name} must be an integer, not {type(value).__name__}")
    if value < 0:
        raise OutOfRangeError(f"{name} must not be negative, got {value}")
    if int(value) >= 1 << bits:
        raise OutOfRangeError(f"{name} must be below 2**{bits}, got {value}")
    return int(value)


def check_duration(name: str, value: object) -> None:
    """Raise an error unless the value is a non-negative timedelta."""
    if not isinstance(value, dt.timedelta):
        raise WrongTypeError(f"{name} must be a datetime.timedelta, not {type(value).__name__}")
    if value < dt.timedelta(0):
        raise InvalidInputError(f"{name} must not be negative, got {value}")


def check_switch(name: str, value: object) -> None:
    """Raise TypeError unless an argument is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {type(value).__name__}")


def check_order(order: object) -> str:
    """Return the sort order, ``asc`` or ``desc`` (the default). Raise InvalidInputError for another value."""
    if order is None:
        return "desc"
    if order not in ("asc", "desc"):
        raise InvalidInputError(f"Invalid sort order {order!r}. Valid values are: asc, desc")
    return str(order)


def check_texts(name: str, values: object) -> dict[str, str]:
    """Return a mapping of text to text as a dictionary. Raise TypeError for another value."""
    if not isinstance(values, Mapping) or not all(isinstance(text, str) for pair in values.items() for text in pair):
        raise WrongTypeError(f"{name} must be a dictionary whose keys and values are text, not {values!r}")
    return dict(values)


def refuse(call: str, **options: Any) -> None:
    """Raise UnsupportedError if one of the options is not None."""
    for name, value in options.items():
        if value is not None:
            raise UnsupportedError(f"{call}: {name} is not supported by this release")


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None, to pass on to a function in which None means "not given"."""
    return {name: value for name, value in options.items() if value is not None}
