"""Sharding values that SSTables are known to have, and those that a filter or a key asks for.

A writer marks each SSTable with the sharding values of its rows if they are few. Readers whose filter fixes the column
that rows are sharded by leave out SSTables without any of its values. This is only done if the column belongs to the
primary key: otherwise rows of one key could have different values, and a newer one that is left out would no longer
hide an older one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.expr.tree import And, Column, Comparison, Constant, Expression, OneOf, Or
from lance_dataset.memwal.details import ShardingSpec, find_details
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.sharding import sharding_values
from lance_dataset.table.manifest import Manifest

__all__ = ["ShardRouting", "may_hold"]

#: Sharding values that an SSTable is marked with at most, and their bytes.
_MOST_VALUES, _MOST_BYTES = 8, 1 << 10


@dataclass(frozen=True)
class ShardRouting:
    """Way from the key of rows to their sharding value.

    Attributes
    ----------
    spec
        Spec of a table, which has one field.
    column
        Column of the key that the value comes from.
    field_id
        Id of the column.
    kind
        Type of the column.
    schema
        Schema that filters see.
    """

    spec: ShardingSpec
    column: str
    field_id: int
    kind: pa.DataType
    schema: pa.Schema

    @classmethod
    def of(cls, manifest: Manifest, key: KeyColumns) -> ShardRouting | None:
        """Return the routing of a table; None if its rows are not sharded by one column of its key."""
        details = find_details(manifest)
        if details is None or len(details.sharding_specs) != 1 or len(details.sharding_specs[0].fields) != 1:
            return None
        spec = details.sharding_specs[0]
        sources = spec.fields[0].source_ids
        if len(sources) != 1 or sources[0] not in key.ids:
            return None
        name = key.names[key.ids.index(sources[0])]
        kind = manifest.schema.top_level(name).storage_type
        return cls(spec, name, sources[0], kind, manifest.schema.storage_arrow)

    def marks(self, values: pa.Array) -> frozenset[str] | None:
        """Return the marks of rows, given their values in the column; None if they are many or cannot be computed."""
        batch = pa.RecordBatch.from_arrays([values], [self.column])
        try:
            found = sharding_values(batch, self.spec, {self.field_id: self.column}).column(0)
        except (FieldNotFoundError, InvalidInputError, UnsupportedError):
            return None
        distinct = found.unique()
        if len(distinct) > _MOST_VALUES:
            return None
        field = self.spec.fields[0]
        way = f"{field.transform}:{self.field_id}:{field.parameters.get('num_buckets', '')}"
        marks = frozenset(f"{way}:{value!r}" for value in distinct.to_pylist())
        return marks if sum(map(len, marks)) <= _MOST_BYTES else None

    def wanted(self, text: str | None) -> frozenset[str] | None:
        """Return the marks of the rows for which a filter can be true; None if it does not fix the column.

        Raises
        ------
        FilterError, FieldNotFoundError
            The filter does not fit the table.
        """
        filter = compile_filter(text, self.schema)
        values = None if filter is None or filter.tree is None else self._values(filter.tree)
        if values is None or any(value.type != self.kind for value in values):
            return None
        return self.marks(pa.array([value.as_py() for value in values], self.kind))

    def _values(self, node: Expression) -> list[pa.Scalar] | None:
        """Return all values of the column for which an expression can be true; None if they are not known."""
        if isinstance(node, And | Or):
            parts = [self._values(operand) for operand in node.operands]
            if isinstance(node, And):
                return min((part for part in parts if part is not None), key=len, default=None)
            known = [part for part in parts if part is not None]
            return [value for part in known for value in part] if len(known) == len(parts) else None
        if isinstance(node, Comparison) and node.operator == "=":
            for column, constant in ((node.left, node.right), (node.right, node.left)):
                if self._is_column(column):
                    return _constants([constant])
        if isinstance(node, OneOf) and not node.negated and self._is_column(node.operand):
            return list(node.values.drop_null())
        return None

    def _is_column(self, node: Expression) -> bool:
        return isinstance(node, Column) and tuple(node.path) == (self.column,)


def may_hold(marks: frozenset[str] | None, wanted: frozenset[str] | None) -> bool:
    """Return True unless an SSTable with some marks cannot have rows with those that are wanted; None for unknown."""
    return marks is None or wanted is None or not marks.isdisjoint(wanted)


def _constants(nodes: Sequence[Expression]) -> list[pa.Scalar] | None:
    """Return the values of constants without nulls, which equal nothing; None if a node is not a constant."""
    values = [node.value for node in nodes if isinstance(node, Constant)]
    return [value for value in values if value.is_valid] if len(values) == len(nodes) else None
