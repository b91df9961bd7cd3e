"""Buffers of key columns, by which keys are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import SchemaError, UnsupportedError
from lance_dataset.file.kinds import is_binary_like, is_wide
from lancecodec import join_keys
from lancecodec.join_keys import KeyTable

if TYPE_CHECKING:
    from lancecodec.join_keys import KeyColumn

__all__ = ["KeyKind", "cast_keys", "is_view", "key_columns", "key_kind", "plain_type"]

_NO_BYTES = b""
#: Digits of the widest decimals.
_MOST_DIGITS = 76

#: Equal for two columns if their values can be compared byte by byte.
KeyKind: TypeAlias = "tuple[str | int | KeyKind, ...]"


def key_columns(arrays: Sequence[pa.Array]) -> list[KeyColumn]:
    """Describe key columns for the codec.

    A row in which one of the columns is null has no key. Inside structs and lists a null is an ordinary value. Columns
    that differ only in their encoding (dictionaries, views, width of offsets) have the same description.

    Raises
    ------
    UnsupportedError
        Values of a type cannot be compared.
    """
    return [column for array in arrays for column in _columns(array, null_is_value=False)]


def key_kind(kind: pa.DataType) -> KeyKind:
    """Return the kind of a type. Keys can be compared if their types are of the same kind."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return key_kind(kind.storage_type)
    if types.is_dictionary(kind):
        return key_kind(kind.value_type)
    if is_view(kind) or is_binary_like(kind):
        return ("bytes",)
    if types.is_decimal(kind):
        return "decimal", kind.bit_width, kind.scale
    if types.is_timestamp(kind):
        return "timestamp", kind.unit, "" if kind.tz is None else "zoned"
    if types.is_struct(kind):
        return "struct", *((field.name, key_kind(field.type)) for field in kind)
    if types.is_map(kind):
        return "list", ("struct", ("key", key_kind(kind.key_type)), ("value", key_kind(kind.item_type)))
    if _is_list(kind):
        return "list", key_kind(kind.value_type)
    return (str(kind),)


def _columns(array: pa.Array, *, null_is_value: bool) -> Iterator[KeyColumn]:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from _columns(array.storage, null_is_value=null_is_value)
    elif pa.types.is_dictionary(kind):
        yield from _columns(_decoded(array), null_is_value=null_is_value)
    elif pa.types.is_struct(kind):
        yield from _struct(array, null_is_value=null_is_value)
    elif pa.types.is_null(kind):
        yield (join_keys.NOTHING, null_is_value, bytes((len(array) + 7) // 8), 0, _NO_BYTES, 0, None, False)
    elif is_view(kind):
        yield from _columns(array.cast(plain_type(kind)), null_is_value=null_is_value)
    elif is_binary_like(kind):
        yield _described(array, join_keys.TEXTS, null_is_value=null_is_value)
    elif pa.types.is_boolean(kind):
        yield _described(array, join_keys.BITS, null_is_value=null_is_value)
    elif _is_list(kind):
        yield _list(array, null_is_value=null_is_value)
    else:
        yield _described(array, _width(kind), null_is_value=null_is_value)


def _described(array: pa.Array, width: int, *, null_is_value: bool) -> KeyColumn:
    """Describe an array of a type without children."""
    buffers = array.buffers()
    validity = buffers[0] if array.null_count else None
    offsets = (buffers[1] or bytes(8)) if width == join_keys.TEXTS else None
    data = (buffers[-1] if width != join_keys.NOTHING else None) or _NO_BYTES
    return width, null_is_value, validity, array.offset, data, array.offset, offsets, is_wide(array.type)


def _width(kind: pa.DataType) -> int:
    if pa.types.is_fixed_size_binary(kind):
        return kind.byte_width
    try:
        return kind.bit_width // 8
    except ValueError as error:
        raise UnsupportedError(f"values of type {kind} cannot be keys") from error


def _presence(array: pa.Array, *, null_is_value: bool) -> KeyColumn:
    """Describe only the nulls of an array."""
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return join_keys.NOTHING, null_is_value, validity, 0, _NO_BYTES, 0, None, False


def _decoded(array: pa.DictionaryArray) -> pa.Array:
    """Decode a dictionary array; an index without an entry is an error."""
    return array.dictionary.take(array.indices)


def _struct(array: pa.StructArray, *, null_is_value: bool) -> Iterator[KeyColumn]:
    yield _presence(array, null_is_value=null_is_value)
    for child in array.flatten():
        yield from _columns(child, null_is_value=True)


# -- lists -------------------------------------------------------------------------------------------------------


def _list(array: pa.Array, *, null_is_value: bool) -> KeyColumn:
    """Describe lists as strings, whose bytes are their packed items."""
    items, ends = _items(array)
    bounds = np.zeros(len(items) + 1, np.int64)
    data = join_keys.pack(list(_columns(items, null_is_value=True)), len(items), bounds)
    _, _, validity, bit, *_ = _presence(array, null_is_value=null_is_value)
    return join_keys.TEXTS, null_is_value, validity, bit, data, 0, bounds[ends], True


def _items(array: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Return the items of lists, and the offsets of the lists in them, beginning with 0."""
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        items = array.values.slice(array.offset * size, len(array) * size)
        return items, np.arange(len(array) + 1, dtype=np.int64) * size
    if _is(kind, "is_list_view") or _is(kind, "is_large_list_view"):
        sizes = pc.list_value_length(array).fill_null(0)  # Arrow's cast to a list omits the last end
        return array.flatten(), np.concatenate([[0], np.cumsum(np.asarray(sizes), dtype=np.int64)])
    if pa.types.is_map(array.type):
        array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    ends = np.asarray(array.offsets).astype(np.int64)
    return array.values.slice(int(ends[0]), int(ends[-1] - ends[0])), ends - ends[0]


def _is_list(kind: pa.DataType) -> bool:
    plain = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return plain or pa.types.is_map(kind) or _is(kind, "is_list_view") or _is(kind, "is_large_list_view")


def is_view(kind: pa.DataType) -> bool:
    """Return True for string and binary views."""
    return _is(kind, "is_string_view") or _is(kind, "is_binary_view")


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the large string or binary type for the values of a view."""
    return pa.large_string() if _is(kind, "is_string_view") else pa.large_binary()


def _is(kind: pa.DataType, test: str) -> bool:
    """Test for a type that some releases of Arrow lack."""
    return bool(getattr(pa.types, test, lambda kind: False)(kind))


# -- keys of another type ----------------------------------------------------------------------------------------


def cast_keys(keys: pa.ChunkedArray, target: pa.DataType, name: str) -> pa.ChunkedArray:
    """Cast keys of a source to the type of the table's column.

    Parameters
    ----------
    keys
        Key column of the source.
    target
        Type of the table's column.
    name
        Name of the column in error messages.

    Returns
    -------
    pyarrow.ChunkedArray
        Keys of the kind of `target` (see `key_kind`). A key is null if the table cannot hold an equal value.

    Raises
    ------
    SchemaError
        Values of the two types cannot be compared.
    """
    if key_kind(keys.type) == key_kind(target):
        return keys
    source, plain = _value_type(keys.type), _value_type(target)
    if not pa.types.is_null(source) and not _comparable(source, plain):
        raise SchemaError(f"key column {name!r} is of type {keys.type} in the source and {target} in the table")
    try:
        chunks = [_exactly(_plain_values(chunk), plain) for chunk in keys.chunks]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        text = f"key column {name!r}: values of type {keys.type} are not of the table's type {target}: {error}"
        raise SchemaError(text) from error
    return pa.chunked_array(chunks, plain)


def _plain_values(array: pa.Array) -> pa.Array:
    """Convert an array of a dictionary, view or extension type to its plain type."""
    if isinstance(array, pa.ExtensionArray):
        return _plain_values(array.storage)
    if pa.types.is_dictionary(array.type):
        return _plain_values(_decoded(array))
    return array.cast(plain_type(array.type)) if is_view(array.type) else array


def _value_type(kind: pa.DataType) -> pa.DataType:
    """Return the plain type of the values of a dictionary, view or extension type."""
    if isinstance(kind, pa.BaseExtensionType):
        return _value_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _value_type(kind.value_type)
    return plain_type(kind) if is_view(kind) else kind


def _exactly(keys: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast keys; those that the cast would change become null."""
    if pa.types.is_null(keys.type):
        return pa.nulls(len(keys), target)
    keys = _within(keys, target)
    cast = keys.cast(target, safe=not _is_number(target))
    # A number that is cut or wraps around does not survive the cast back.
    table, given, back = KeyTable(), np.empty(len(keys), np.int64), np.full(len(keys), -1, np.int64)
    table.add(key_columns([keys]), len(keys), given)
    places, groups = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    found = table.find(key_columns([cast.cast(keys.type, safe=False)]), len(keys), places, groups)
    back[places[:found]] = groups[:found]
    return cast if np.array_equal(given, back) else pc.if_else(pa.array(given == back), cast, None)


def _within(keys: pa.Array, target: pa.DataType) -> pa.Array:
    """Set keys that are too long or too large for a type to null, and widen decimals for the cast."""
    types = pa.types
    if types.is_fixed_size_binary(target):
        return pc.if_else(pc.equal(pc.binary_length(keys), target.byte_width), keys, None)
    if types.is_integer(keys.type) and types.is_integer(target):
        ranges = [np.iinfo(kind.to_pandas_dtype()) for kind in (keys.type, target)]
        low, high = max(int(range.min) for range in ranges), min(int(range.max) for range in ranges)
        bounds = pa.scalar(low, keys.type), pa.scalar(high, keys.type)
        return pc.if_else(pc.and_(pc.greater_equal(keys, bounds[0]), pc.less_equal(keys, bounds[1])), keys, None)
    if types.is_decimal(target) and types.is_integer(keys.type):
        return keys.cast(pa.decimal256(_MOST_DIGITS, target.scale))
    if types.is_decimal(keys.type) and types.is_integer(target):
        return keys.cast(pa.decimal256(_MOST_DIGITS, keys.type.scale))
    return keys


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_primitive(kind) or pa.types.is_decimal(kind)


#: Families of types whose values are compared with each other.
_FAMILIES: Sequence[Callable[[pa.DataType], bool]] = (
    lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind),
    lambda kind: is_binary_like(kind) or pa.types.is_fixed_size_binary(kind),
    lambda kind: pa.types.is_date(kind),
    lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,
    lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    lambda kind: pa.types.is_time(kind),
    lambda kind: pa.types.is_duration(kind),
)


def _comparable(source: pa.DataType, target: pa.DataType) -> bool:
    if any(family(source) and family(target) for family in _FAMILIES):
        return True
    is_map = pa.types.is_map(source) or pa.types.is_map(target)
    if _is_list(source) and _is_list(target) and not is_map:
        return _comparable_parts(source.value_type, target.value_type)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        if [field.name for field in source] != [field.name for field in target]:
            return False
        return all(_comparable_parts(mine.type, other.type) for mine, other in zip(source, target, strict=True))
    return False


def _comparable_parts(source: pa.DataType, target: pa.DataType) -> bool:
    return source == target or _comparable(_value_type(source), _value_type(target))
