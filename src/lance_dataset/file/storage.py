"""Conversion of batches to the exact storage types of a schema, without copies where nothing changes."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import SchemaError, nearest_name_hint
from lance_dataset.file.buffers import bitmap_at_zero
from lance_dataset.file.extensions import remap
from lance_dataset.file.options import is_blob_v2
from lance_dataset.types.schema import Field, Schema

__all__ = ["storage_batch"]

_REMEMBERED = 64
#: Number of children of a blob column whose references are to whole objects.
_WHOLE_BLOB = 2
_Convert = Callable[[pa.Array], pa.Array]


class _Plan:
    """Plan to convert batches to a Lance schema: a source column and a conversion for each field."""

    def __init__(self, given: pa.Schema, schema: Schema, fill_missing: bool) -> None:
        self.given = given
        self.schema = schema
        self.fill_missing = fill_missing
        self.columns = [_plan_column(given, field, fill_missing) for field in schema.fields]
        _refuse_unknown(given.names, schema.names, "")
        self.required = [field.name for field in schema.fields if not field.nullable]
        self.unchanged = all(
            source == i and convert is None for i, (source, convert) in enumerate(self.columns)
        ) and len(given) == len(self.columns)

    def fits(self, given: pa.Schema, fill_missing: bool) -> bool:
        return self.fill_missing == fill_missing and self.given.equals(given)


# Keyed by the identity of the Lance schema, which the plan keeps alive: comparing schemas costs more than the work.
_plans: dict[int, _Plan] = {}


def storage_batch(batch: pa.RecordBatch, schema: Schema, *, fill_missing: bool = True) -> pa.RecordBatch:
    """Convert the batch to exactly the types of ``schema.storage_arrow``, with columns in its order.

    Columns are matched by name. Extension arrays are replaced by their storage, and views by plain strings and
    binaries, at any depth.

    Parameters
    ----------
    batch
        Any record batch.
    schema
        Schema of the result.
    fill_missing
        True to fill nullable columns (and nested fields) that the batch lacks with nulls, False to raise.

    Returns
    -------
    pyarrow.RecordBatch
        The batch itself if nothing changes.

    Raises
    ------
    SchemaError
        A column is missing, is unknown, has another type, or has nulls where none are allowed.
    """
    given = batch.schema
    plan = _plans.get(id(schema))
    if plan is None or plan.schema is not schema or not plan.fits(given, fill_missing):
        plan = _Plan(given, schema, fill_missing)
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        _plans[id(schema)] = plan
    if not plan.unchanged:
        batch = _apply(plan, batch)
    for name in plan.required:
        nulls = batch.column(name).null_count
        if nulls:
            raise SchemaError(f"column {name!r} is declared not nullable, but its data holds {nulls} null values")
    return batch


def _apply(plan: _Plan, batch: pa.RecordBatch) -> pa.RecordBatch:
    arrays = []
    for field, (source, convert) in zip(plan.schema.fields, plan.columns, strict=True):
        if source is None:
            arrays.append(pa.nulls(batch.num_rows, field.storage_type))
        else:
            array = batch.column(source)
            arrays.append(array if convert is None else convert(array))
    if not arrays:
        return batch
    return pa.RecordBatch.from_arrays(arrays, schema=plan.schema.storage_arrow)


def _plan_column(given: pa.Schema, field: Field, fill_missing: bool) -> tuple[int | None, _Convert | None]:
    positions = given.get_all_field_indices(field.name)
    if len(positions) > 1:
        raise SchemaError(f"column {field.name!r} occurs {len(positions)} times in the data; names must be unique")
    if positions:
        return positions[0], _converter(given.field(positions[0]).type, field, field.name, fill_missing)
    if not (fill_missing and field.nullable):
        raise SchemaError(f"the data has no column {field.name!r}{nearest_name_hint(field.name, given.names)}")
    return None, None


def _refuse_unknown(given: list[str], known: list[str], parent: str) -> None:
    wanted = set(known)
    for name in given:
        if name not in wanted:
            where = f"column {parent!r}: the data has a field" if parent else "the data has a column"
            raise SchemaError(f"{where} {name!r} that the schema does not have{nearest_name_hint(name, known)}")


def _converter(given: pa.DataType, field: Field, path: str, fill_missing: bool) -> _Convert | None:
    """Return the conversion from a type to the storage type of a field; None if they are the same."""
    if field.logical_type == "json":
        return _json_converter(given, path)
    if is_blob_v2(field) and len(field.children) == _WHOLE_BLOB:
        return _whole_blob_converter(given, field, path, fill_missing)
    return _type_converter(given, field.storage_type, field.children, path, fill_missing)


def _type_converter(
    given: pa.DataType, wanted: pa.DataType, children: tuple[Field, ...], path: str, fill_missing: bool
) -> _Convert | None:
    if given == wanted:
        return None
    kinds = pa.types
    if isinstance(given, pa.BaseExtensionType):
        return _then(_storage_of, _type_converter(given.storage_type, wanted, children, path, fill_missing))
    if (kinds.is_string_view(given) and kinds.is_string(wanted)) or (
        kinds.is_binary_view(given) and kinds.is_binary(wanted)
    ):
        return lambda array: _cast_view(array, wanted, path)
    if kinds.is_struct(given) and kinds.is_struct(wanted):
        return _struct_converter(given, wanted, children, path, fill_missing)
    if _same_list_kind(given, wanted):
        item = f"{path}.{wanted.value_field.name}"
        if children:
            inner = _converter(given.value_type, children[0], item, fill_missing)
        else:
            # Fixed-size lists of anything but structs have no field for their items.
            inner = _type_converter(given.value_type, wanted.value_type, (), item, fill_missing)
        return lambda array: _relist(array, wanted, inner)
    if kinds.is_map(given) and kinds.is_map(wanted):
        entries = pa.struct([given.key_field, given.item_field])
        convert = _converter(entries, children[0], f"{path}.{children[0].name}", fill_missing)
        return None if convert is None else lambda array: remap(array, wanted, convert)
    if kinds.is_dictionary(given) and kinds.is_dictionary(wanted) and _unordered(given) == wanted:
        return lambda array: pa.DictionaryArray.from_arrays(array.indices, array.dictionary)
    raise SchemaError(f"column {path!r}: the data has type {given}, but the schema has {wanted}")


def _whole_blob_converter(given: pa.DataType, field: Field, path: str, fill_missing: bool) -> _Convert | None:
    """Return the conversion for a blob column whose references are to whole objects."""
    if isinstance(given, pa.BaseExtensionType):
        return _then(_storage_of, _whole_blob_converter(given.storage_type, field, path, fill_missing))
    plain = pa.types.is_struct(given) and [child.name for child in given] == ["data", "uri", "position", "size"]
    if not plain:
        return _type_converter(given, field.storage_type, field.children, path, fill_missing)
    kept = pa.struct(list(given)[:_WHOLE_BLOB])

    def without_ranges(array: pa.StructArray) -> pa.StructArray:
        if array.field("position").null_count < len(array):
            raise SchemaError(
                f"column {path!r}: a blob is a range of an object, but the column has whole objects only; append the "
                "row, or pass its bytes"
            )
        return _restruct(array, kept, [(number, None) for number in range(_WHOLE_BLOB)])

    return _then(without_ranges, _type_converter(kept, field.storage_type, field.children, path, fill_missing))


def _json_converter(given: pa.DataType, path: str) -> _Convert | None:
    kinds = pa.types
    if isinstance(given, pa.BaseExtensionType):
        return _then(_storage_of, _json_converter(given.storage_type, path))
    if kinds.is_large_binary(given):
        return None
    if kinds.is_string(given) or kinds.is_large_string(given) or kinds.is_string_view(given):
        from lance_dataset.file.json_columns import encode_array

        return lambda array: encode_array(array, f"column {path!r}")
    raise SchemaError(f"column {path!r}: the data has type {given}, but the schema has JSON; pass it as text")


def _then(first: _Convert, second: _Convert | None) -> _Convert:
    return first if second is None else lambda array: second(first(array))


def _storage_of(array: pa.Array) -> pa.Array:
    return array.storage


def _cast_view(array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise SchemaError(f"column {path!r}: a batch holds too many bytes for type {wanted}: {error}") from error


def _same_list_kind(given: pa.DataType, wanted: pa.DataType) -> bool:
    kinds = pa.types
    if kinds.is_fixed_size_list(given) and kinds.is_fixed_size_list(wanted):
        return given.list_size == wanted.list_size
    return any(is_kind(given) and is_kind(wanted) for is_kind in (kinds.is_list, kinds.is_large_list))


def _unordered(dictionary: pa.DictionaryType) -> pa.DictionaryType:
    return pa.dictionary(dictionary.index_type, dictionary.value_type)


def _relist(array: pa.Array, wanted: pa.DataType, inner: _Convert | None) -> pa.Array:
    """Return the same lists of another type, with converted items; offsets and validity are shared."""
    buffers = array.buffers()[: 1 if pa.types.is_fixed_size_list(wanted) else 2]
    items = array.values if inner is None else inner(array.values)
    return pa.Array.from_buffers(wanted, len(array), buffers, array.null_count, array.offset, [items])


def _struct_converter(
    given: pa.StructType, wanted: pa.StructType, fields: tuple[Field, ...], path: str, fill_missing: bool
) -> _Convert:
    names = [given.field(i).name for i in range(given.num_fields)]
    sources = {name: source for source, name in enumerate(names)}
    repeated = {name for source, name in enumerate(names) if sources[name] != source}
    _refuse_unknown(names, [child.name for child in fields], path)
    plan: list[tuple[int | None, _Convert | None]] = []
    for child in fields:
        below = f"{path}.{child.name}"
        if child.name in repeated:
            raise SchemaError(f"column {below!r} occurs twice in the data; names must be unique")
        source = sources.get(child.name)
        if source is not None:
            plan.append((source, _converter(given.field(source).type, child, below, fill_missing)))
        elif fill_missing and child.nullable:
            plan.append((None, None))
        else:
            raise SchemaError(f"the data has no field {below!r}{nearest_name_hint(child.name, names)}")
    return lambda array: _restruct(array, wanted, plan)


def _restruct(
    array: pa.StructArray, wanted: pa.StructType, plan: list[tuple[int | None, _Convert | None]]
) -> pa.StructArray:
    fields = list(wanted)
    children = []
    for child, (source, convert) in zip(fields, plan, strict=True):
        if source is None:
            children.append(pa.nulls(len(array), child.type))
        else:
            values = array.field(source)
            children.append(values if convert is None else convert(values))
    validity = None
    if array.null_count:
        valid = pc.is_valid(array)
        validity = bitmap_at_zero(valid.buffers()[1], valid.offset, len(valid))
    return pa.Array.from_buffers(wanted, len(array), [validity], array.null_count, 0, children)
