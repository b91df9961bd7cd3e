"""Addition of intervals to dates and timestamps: first months (clipped to the last day), then days, then time.

For values with a time zone, months and days are those of local time, so a day later is the same time of day, whatever
happened to the clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["PER_SECOND", "add_interval", "interval_kernel", "months_later"]

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def interval_kernel(operator: str) -> Callable[[Any, Any], Any]:
    """Return the kernel of ``moment + interval`` or ``moment - interval``."""
    sign = -1 if operator == "-" else 1

    def kernel(moment: Any, interval: pa.Scalar) -> Any:
        step = interval.as_py()
        if step is None:
            missing = pa.scalar(None, moment.type)
            return missing if isinstance(moment, pa.Scalar) else pa.nulls(len(moment), moment.type)
        return add_interval(moment, sign * step.months, sign * step.days, sign * step.nanoseconds)

    return kernel


def add_interval(moment: Any, months: int, days: int, nanoseconds: int) -> Any:
    """Add an interval to a date or timestamp, array or scalar; dates ignore nanoseconds.

    Raises
    ------
    pyarrow.ArrowInvalid
        A result is outside the range of the type.
    """
    if isinstance(moment, pa.Scalar):
        return add_interval(pa.repeat(moment, 1), months, days, nanoseconds)[0]
    arrow = moment.type
    if pa.types.is_date(arrow):
        return pc.cast(_later(pc.cast(moment, pa.timestamp("s")), months, days, 0), arrow)
    zone = arrow.tz
    if zone and (months or days):
        local = _later(pc.local_timestamp(moment), months, days, 0)
        moment = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest")
        months = days = 0
    return pc.cast(_later(pc.cast(moment, pa.timestamp(arrow.unit)), months, days, nanoseconds), arrow)


def _later(moment: pa.Array, months: int, days: int, nanoseconds: int) -> pa.Array:
    """Add an interval to naive timestamps."""
    per_second = PER_SECOND[moment.type.unit]
    per_day = 86_400 * per_second
    missing = moment.is_null().to_numpy(zero_copy_only=False)
    ticks = pc.fill_null(pc.cast(moment, pa.int64()), 0).to_numpy()
    day, rest = np.divmod(ticks, per_day)
    if months:
        day = months_later(day, months)
    day = day + days
    extra, within = divmod(nanoseconds // (10**9 // per_second), per_day)
    day, rest = day + extra + (rest + within) // per_day, (rest + within) % per_day
    limit = (2**63 - 1) // per_day
    if np.any((np.abs(day) >= limit) & ~missing):
        raise pa.ArrowInvalid(f"The result of the interval arithmetic is outside the range of {moment.type}")
    return pc.cast(pa.array(day * per_day + rest, pa.int64(), mask=missing), moment.type)


def months_later(day: NDArray[np.int64], months: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Add months to days since the epoch, using the last day of a month that lacks the day."""
    month = day.astype("M8[D]").astype("M8[M]")
    within = day - month.astype("M8[D]").astype(np.int64)
    first = (month + months).astype("M8[D]").astype(np.int64)
    following = (month + (months + 1)).astype("M8[D]").astype(np.int64)
    later: NDArray[np.int64] = first + np.minimum(within, following - first - 1)
    return later
