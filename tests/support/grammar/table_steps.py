"""Hypothesis strategies for changes of a small table: rows, predicates, expressions, keys.

The changes fit the current schema of the table. Numbers and words come from few values, so that predicates and keys
match some rows. Nulls are wherever the schema allows them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

__all__ = [
    "POOL",
    "SIZES",
    "VERSIONS",
    "Merge",
    "alterations",
    "expressions",
    "merges",
    "paths_of",
    "predicates",
    "random_rows",
    "schemas",
]

VERSIONS = ("2.0", "2.1", "2.2")
SIZES = st.sampled_from([1, 3, 8, 12, 0])
KEY = pa.field("id", pa.int64())
POOL = {
    "a": pa.int32(),
    "s": pa.string(),
    "f": pa.float64(),
    "n": pa.struct([("x", pa.int32()), ("y", pa.string())]),
    "l": pa.list_(pa.int16()),
    "t": pa.bool_(),
    "v": pa.list_(pa.float32(), 2),
    "d": pa.date32(),
    "b": pa.large_binary(),
    "m": pa.list_(pa.struct([("p", pa.int64()), ("q", pa.string())])),
}


@st.composite
def schemas(draw: st.DrawFn) -> pa.Schema:
    """Draw a schema with the key and one to five other columns."""
    names = draw(st.lists(st.sampled_from(list(POOL)), min_size=1, max_size=5, unique=True))
    return pa.schema([KEY, *((name, POOL[name]) for name in names)])


def random_rows(schema: pa.Schema, ids: Sequence[int], seed: int, *, null_structs: bool) -> pa.Table:
    """Return rows with these ids; all other values follow from the seed.

    Parameters
    ----------
    null_structs
        True if whole structs may be null too; file version 2.0 does not support them.
    """
    chance = random.Random(seed)
    arrays = []
    for field in schema:
        if field.name == KEY.name:
            arrays.append(pa.array(ids, field.type))
        else:
            arrays.append(pa.array([_value(field, chance, null_structs) for _ in ids], field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _value(field: pa.Field, chance: random.Random, null_structs: bool) -> Any:
    kind = field.type
    if pa.types.is_null(kind):
        return None
    if field.nullable and chance.random() < 0.2 and (null_structs or not pa.types.is_struct(kind)):
        return None
    number = chance.randrange(8)
    if pa.types.is_struct(kind):
        return {child.name: _value(child, chance, null_structs) for child in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_value(kind.value_field, chance, null_structs) for _ in range(number % 4)]
    if pa.types.is_fixed_size_list(kind):
        return [float(number + each) for each in range(kind.list_size)]
    if pa.types.is_boolean(kind):
        return number % 2 == 0
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return f"s{number}"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return bytes([number] * number)
    if pa.types.is_floating(kind):
        return number / 2
    return number


def columns_like(schema: pa.Schema, *tests: Any) -> list[str]:
    """Return the names of the columns whose type passes one of the tests, except the key."""
    return [field.name for field in schema if field.name != KEY.name and any(test(field.type) for test in tests)]


def _words(schema: pa.Schema) -> list[str]:
    return columns_like(schema, pa.types.is_string, pa.types.is_large_string)


@st.composite
def predicates(draw: st.DrawFn, schema: pa.Schema, last_id: int) -> str:
    """Draw a filter that usually matches some rows."""
    start = draw(st.integers(0, max(0, last_id)))
    found = [
        f"id % 3 = {start % 3}",
        f"id >= {start} AND id < {start + 6}",
        f"id IN ({start}, {start + 2}, {start + 7})",
    ]
    found += [f"{name} {test}" for name in schema.names[1:] for test in ("IS NULL", "IS NOT NULL")]
    found += [f"{name} > {start % 8}" for name in columns_like(schema, pa.types.is_integer, pa.types.is_floating)]
    found += [f"{name} = 's{start % 8}'" for name in _words(schema)]
    found += [f"{name} LIKE '%{start % 8}'" for name in _words(schema)]
    found += [f"{name}.x = {start % 8}" for name in _structs(schema, "x")]
    found += ["false", "true"]
    return draw(st.sampled_from(found))


def _structs(schema: pa.Schema, child: str) -> list[str]:
    names = columns_like(schema, pa.types.is_struct)
    return [name for name in names if schema.field(name).type.get_field_index(child) >= 0]


@st.composite
def expressions(draw: st.DrawFn, schema: pa.Schema, kind: pa.DataType) -> str:
    """Draw SQL for a value of a type."""
    same = columns_like(schema, lambda each: each == kind)
    found = [*same, "NULL"]
    if pa.types.is_integer(kind):
        found += ["7", "id % 5", *(f"{name} + 1" for name in same)]
    elif pa.types.is_floating(kind):
        found += ["0.5", *(f"{name} * 2" for name in same)]
    elif pa.types.is_boolean(kind):
        found += ["id > 9", *(f"NOT {name}" for name in same)]
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        found += ["'s3'", *(f"upper({name})" for name in same), *(f"concat({name}, 'x')" for name in same)]
    return draw(st.sampled_from(found))


@dataclass(frozen=True)
class Merge:
    """Merge of new rows into a table.

    Attributes
    ----------
    on
        Key columns.
    ids
        Ids of the source rows.
    columns
        Columns of the source.
    matched
        ``update``, ``delete``, ``fail``, None, or a condition for updates.
    inserts
        True if rows with new keys are inserted.
    missing
        Deletion of rows whose keys the source does not have: None, ``true`` (all of them), or a condition.
    """

    on: tuple[str, ...]
    ids: tuple[int, ...]
    columns: tuple[str, ...]
    matched: str | None
    inserts: bool
    missing: str | None

    def source(self, schema: pa.Schema, seed: int, *, null_structs: bool) -> pa.Table:
        """Return the rows, only the first of those with equal keys: several for one row of the table are an error."""
        rows = random_rows(schema, self.ids, seed, null_structs=null_structs)
        seen, kept = set(), []
        for place, key in enumerate(zip(*(rows[name].to_pylist() for name in self.on), strict=True)):
            if key not in seen:
                seen.add(key)
                kept.append(place)
        return (
            rows.take(pa.array(kept, pa.int64()))
            .select(list(self.columns))
            .cast(pa.schema([schema.field(name) for name in self.columns]))
        )

    def run(self, dataset: Any, source: pa.Table) -> Any:
        """Run the merge with either library and return the counts that both report."""
        builder = dataset.merge_insert(list(self.on))
        if self.matched == "update":
            builder = builder.when_matched_update_all()
        elif self.matched == "delete":
            builder = builder.when_matched_delete()
        elif self.matched == "fail":
            builder = builder.when_matched_fail()
        elif self.matched is not None:
            builder = builder.when_matched_update_all(self.matched)
        if self.inserts:
            builder = builder.when_not_matched_insert_all()
        if self.missing is not None:
            builder = builder.when_not_matched_by_source_delete(None if self.missing == "true" else self.missing)
        return builder.execute(source)


@st.composite
def merges(draw: st.DrawFn, schema: pa.Schema, last_id: int) -> Merge:
    """Draw a merge with any clauses."""
    others = columns_like(schema, pa.types.is_integer, pa.types.is_string)
    on = draw(
        st.sampled_from([("id",), ("id",), ("id",), *((name,) for name in others), *(("id", name) for name in others)])
    )
    ids = draw(st.lists(st.integers(0, last_id + 6), min_size=0, max_size=8, unique=True))
    columns = list(schema.names)
    if ids and draw(st.integers(0, 3)) == 0:
        left_out = draw(st.sampled_from(columns))
        columns = [name for name in columns if name != left_out or name in ("id", *on)]
    conditions = ["source.id % 2 = 0", "target.id > 5"]
    conditions += [
        f"source.{name} > target.{name}" for name in columns_like(schema, pa.types.is_integer) if name in columns
    ]
    conditions += [f"target.{name} IS NULL" for name in schema.names[1:2]]
    matched = draw(st.sampled_from(["update", "update", "delete", "fail", None, *conditions]))
    missing = draw(st.sampled_from([None, None, None, "true", "id % 2 = 0"]))
    return Merge(on, tuple(ids), tuple(columns), matched, draw(st.booleans()), missing)


#: Target types of casts; some of them are rejected.
CASTS: dict[pa.DataType, list[pa.DataType]] = {
    pa.int32(): [pa.int64(), pa.int16(), pa.string()],
    pa.int64(): [pa.int32()],
    pa.int16(): [pa.int64(), pa.uint8()],
    pa.string(): [pa.large_string()],
    pa.large_string(): [pa.string()],
    pa.float64(): [pa.float32()],
    pa.float32(): [pa.float64()],
    pa.large_binary(): [pa.binary()],
    pa.list_(pa.float32(), 2): [pa.list_(pa.float64(), 2)],
    pa.list_(pa.int16()): [pa.list_(pa.int32())],
}


def paths_of(fields: Iterable[pa.Field], above: str = "") -> list[tuple[str, pa.Field]]:
    """Return columns and fields of structs, with their paths."""
    found = []
    for field in fields:
        path = above + field.name
        found.append((path, field))
        if pa.types.is_struct(field.type):
            found += paths_of(field.type, f"{path}.")
    return found


@st.composite
def alterations(draw: st.DrawFn, schema: pa.Schema, new_name: str, *, cast_children: bool) -> dict[str, Any]:
    """Draw arguments of `alter_columns` for any field but the key.

    Parameters
    ----------
    cast_children
        True if fields of structs are cast; the reference cannot read its own result in 2.0 files.
    """
    path, field = draw(st.sampled_from(paths_of(schema)[1:]))
    kinds = ["name"]
    if field.type != pa.null():  # the reference says that such a column has no nulls
        kinds += ["nullable", "name and nullable"]
    if field.type in CASTS and (cast_children or "." not in path):
        kinds.append("data_type")
    chosen = draw(st.sampled_from(kinds))
    change: dict[str, Any] = {"path": path}
    if "name" in chosen:
        change["name"] = new_name
    if "nullable" in chosen:
        change["nullable"] = not field.nullable
    if chosen == "data_type":
        change["data_type"] = draw(st.sampled_from(CASTS[field.type]))
    return change
