"""Times and durations as numbers and datetimes."""

from __future__ import annotations

import datetime as dt

from lance_dataset.arguments import moment_of

__all__ = ["sanitize_ts", "td_to_micros"]


def sanitize_ts(ts: dt.datetime | str) -> dt.datetime:
    """Return a time as a datetime.

    Parameters
    ----------
    ts
        A datetime (also of pandas), or ISO text.

    Raises
    ------
    TypeError
        It is something else.
    ValueError
        The text is not a time.
    """
    if not isinstance(ts, dt.datetime | str):
        raise TypeError(f"Unrecognized version timestamp {ts} of type {type(ts)}")
    return moment_of(ts)


def td_to_micros(td: dt.timedelta) -> int:
    """Return the whole microseconds of a duration.

    Parameters
    ----------
    td
        The duration.

    Raises
    ------
    TypeError
        It is something else.
    """
    if not isinstance(td, dt.timedelta):
        raise TypeError(f"a duration must be a datetime.timedelta, not {type(td).__name__}")
    return td // dt.timedelta(microseconds=1)
