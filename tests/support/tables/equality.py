"""Comparisons of tables whose chunks and dictionaries may differ."""

from __future__ import annotations

import pyarrow as pa


def _decoded(kind: pa.DataType) -> pa.DataType:
    """Return the type without dictionaries at any depth."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([child.with_type(_decoded(child.type)) for child in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_decoded(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_decoded(kind.value_type)))
    if pa.types.is_map(kind):
        fields = (field.with_type(_decoded(field.type)) for field in (kind.key_field, kind.item_field))
        return pa.map_(*fields, keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_decoded(kind.value_type)), kind.list_size)
    return kind


def plain(column: pa.ChunkedArray) -> pa.Array:
    """Return one array without dictionary encoding."""
    decoded = _decoded(column.type)
    if decoded != column.type and not pa.types.is_dictionary(column.type):
        # Arrow can neither cast nested dictionaries nor concatenate those that hold a null.
        return pa.array(column.to_pylist(), decoded)
    chunks = [chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk for chunk in column.chunks]
    if not chunks:
        value_type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        return pa.array([], value_type)
    return pa.concat_arrays(chunks)


def assert_same(actual: pa.Table, expected: pa.Table) -> None:
    """Assert the same columns, types and values (NaN equals NaN)."""
    assert actual.column_names == expected.column_names
    actual.validate(full=True)
    for name in expected.column_names:
        left, right = actual[name], expected[name]
        assert left.type == right.type, name
        ours, theirs = plain(left), plain(right)
        if not ours.equals(theirs):
            assert repr(ours.to_pylist()) == repr(theirs.to_pylist()), name
