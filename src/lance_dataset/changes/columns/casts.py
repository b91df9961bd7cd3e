"""Casts of columns from one type to another.

A type can change within its family: integers, floats, decimals, strings, binaries, dates and times, durations. Lists
are cast by their items, dictionaries by their values. A value that does not fit is an error. Digits that do not fit are
cut or rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, UnsupportedError

__all__ = ["can_cast", "cast_values", "with_items"]

_kinds = pa.types
_MAX_PRECISION_128 = 38
_MAX_PRECISION_256 = 76


def can_cast(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return True if values of a type can be cast to another one, provided that they fit."""
    if _kinds.is_dictionary(given) or _kinds.is_dictionary(wanted):
        plain = [kind.value_type if _kinds.is_dictionary(kind) else kind for kind in (given, wanted)]
        return not any(_kinds.is_nested(kind) for kind in plain) and can_cast(*plain)
    if _is_list(given) or _is_list(wanted):
        if not (_is_list(given) and _is_list(wanted)):
            return False
        fixed = _kinds.is_fixed_size_list(given) and _kinds.is_fixed_size_list(wanted)
        return can_cast(given.value_type, wanted.value_type) and not (fixed and given.list_size != wanted.list_size)
    if _kinds.is_timestamp(given):
        return _kinds.is_timestamp(wanted) or _kinds.is_date(wanted) or _kinds.is_time(wanted)
    if _kinds.is_date(given):
        return _kinds.is_date(wanted) or _kinds.is_timestamp(wanted)
    return any(is_kind(given) and is_kind(wanted) for is_kind in _FAMILIES)


def _is_list(kind: pa.DataType) -> bool:
    return bool(_kinds.is_list(kind) or _kinds.is_large_list(kind) or _kinds.is_fixed_size_list(kind))


def _is_string(kind: pa.DataType) -> bool:
    return bool(_kinds.is_string(kind) or _kinds.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(_kinds.is_binary(kind) or _kinds.is_large_binary(kind))


def _is_wide_decimal(kind: pa.DataType) -> bool:
    return bool(_kinds.is_decimal128(kind) or _kinds.is_decimal256(kind))


_FAMILIES: tuple[Callable[[pa.DataType], bool], ...] = (
    _kinds.is_boolean,
    _kinds.is_integer,
    _kinds.is_floating,
    _is_wide_decimal,
    _is_string,
    _is_binary,
    _kinds.is_time,
    _kinds.is_duration,
)


def cast_values(array: pa.Array, wanted: pa.DataType, column: str) -> pa.Array:
    """Cast values to another type that `can_cast` allows.

    Integers, decimals and times must fit. Decimals are rounded half away from zero. Times are truncated to the coarser
    unit. Floats are rounded to the nearest value, and become infinite if they are too large. A timestamp without a time
    zone counts as local time if it gets one. A timestamp that loses its zone becomes UTC. The date and the time of day
    of a timestamp are local.

    Parameters
    ----------
    array
        Values to cast.
    wanted
        New type.
    column
        Name of the column, for error messages.

    Raises
    ------
    InvalidInputError
        A value does not fit.
    """
    try:
        return _cast(array, wanted, column)
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"column {column!r} cannot be cast from {array.type} to {wanted} because not all of its values fit: {error}"
        ) from error


def _cast(array: pa.Array, wanted: pa.DataType, column: str) -> pa.Array:
    given = array.type
    if given == wanted:
        return array
    if _kinds.is_dictionary(given):
        return _cast(array.dictionary_decode(), wanted, column)
    if _kinds.is_dictionary(wanted):
        return _cast(array, wanted.value_type, column).dictionary_encode().cast(wanted)
    if _is_list(given):
        return with_items(array, wanted, lambda items: _cast(items, wanted.value_type, column))
    if _kinds.is_float64(given) and _kinds.is_float16(wanted):
        return array.cast(pa.float32()).cast(wanted)  # rounds in two steps, like the reference
    if _is_wide_decimal(given):
        return _cast_decimals(array, wanted)
    if _kinds.is_temporal(given):
        return _cast_times(array, wanted)
    return array.cast(wanted)


def _cast_decimals(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    given = array.type
    if wanted.scale >= given.scale:
        return array.cast(wanted)
    # one more digit, as 99.9 becomes 100
    precision = min(given.precision + 1, _MAX_PRECISION_256)
    make = pa.decimal128 if precision <= _MAX_PRECISION_128 else pa.decimal256
    return pc.round(array.cast(make(precision, given.scale)), wanted.scale, "half_towards_infinity").cast(wanted)


# -- dates and times ---------------------------------------------------------------------------------------------

_UNITS = ("s", "ms", "us", "ns")


def _cast_times(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if _kinds.is_date64(array.type):
        return _cast_timestamps(array.view(pa.timestamp("ms")), wanted)  # some hold more than whole days
    if _kinds.is_date32(array.type):
        # Days always fit into seconds. The cast from seconds to the unit is checked.
        return array.cast(wanted) if _kinds.is_date(wanted) else _cast_timestamps(array.cast(pa.timestamp("s")), wanted)
    if _kinds.is_timestamp(array.type):
        return _cast_timestamps(array, wanted)
    return array.cast(wanted, safe=_is_finer(wanted, array.type))


def _is_finer(wanted: pa.DataType, given: pa.DataType) -> bool:
    return _UNITS.index(wanted.unit) > _UNITS.index(given.unit)


def _cast_timestamps(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    given = array.type
    if not _kinds.is_timestamp(wanted):
        local = array if given.tz is None else pc.local_timestamp(array)
        return local.cast(wanted, safe=_kinds.is_time(wanted) and _is_finer(wanted, given))
    if given.tz is None and wanted.tz is not None:
        array = pc.assume_timezone(array, wanted.tz)
    unit = array.cast(pa.timestamp(wanted.unit, array.type.tz), safe=_is_finer(wanted, given))
    return unit.view(wanted)


# -- lists -------------------------------------------------------------------------------------------------------


def with_items(array: pa.Array, wanted: pa.DataType, convert: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Make lists of another type with the same lengths and converted items.

    Parameters
    ----------
    array
        Lists of any kind. Items under null lists are ignored.
    wanted
        Type of the new lists, of any kind.
    convert
        Returns the items of the new lists for those of the old ones.

    Raises
    ------
    pyarrow.ArrowInvalid
        `wanted` has a fixed list size, and a list has another length.
    UnsupportedError
        The type cannot address that many items.
    InvalidInputError
        Items are null, but `wanted` does not allow that.
    """
    items = convert(array.flatten())
    if items.null_count and not wanted.value_field.nullable:
        raise InvalidInputError(f"the lists have null items, which {wanted} does not allow")
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    if _kinds.is_fixed_size_list(array.type):
        lengths = np.where(valid, array.type.list_size, 0)
    else:
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    mask = pa.array(~valid) if array.null_count else None
    if _kinds.is_fixed_size_list(wanted):
        return _fixed_lists(items, lengths, valid, wanted)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    if _kinds.is_large_list(wanted):
        return pa.LargeListArray.from_arrays(pa.array(offsets), items, type=wanted, mask=mask)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise UnsupportedError(f"{offsets[-1]} items in one batch are too many for {wanted}; use a large list")
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), items, type=wanted, mask=mask)


def _fixed_lists(items: pa.Array, lengths: NDArray[Any], valid: NDArray[np.bool_], wanted: pa.DataType) -> pa.Array:
    size = wanted.list_size
    other = lengths[valid & (lengths != size)]
    if len(other):
        raise pa.ArrowInvalid(f"a list has {other[0]} items instead of {size}")
    if not valid.all():
        places = np.zeros((len(valid), size), np.int64)
        places[valid] = np.arange(len(items)).reshape(-1, size)
        source = items if len(items) else pa.nulls(1, items.type)  # items under null lists are ignored
        items = source.take(pa.array(places.ravel()))
        return pa.FixedSizeListArray.from_arrays(items, type=wanted, mask=pa.array(~valid))
    return pa.FixedSizeListArray.from_arrays(items, type=wanted)
