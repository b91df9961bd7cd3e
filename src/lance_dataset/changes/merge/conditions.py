"""Condition of a merge on pairs of a source row and the target row that it matches."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError
from lance_dataset.expr.compiled import Filter, compile_filter
from lance_dataset.read.empty_batches import rows_only
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS

__all__ = ["PairCondition"]

_SOURCE, _TARGET = "source", "target"
#: Columns of the table that conditions on pairs may name besides those of its schema.
_ADDRESSES = ("_rowid", "_rowaddr")


@dataclass(frozen=True)
class PairCondition:
    """Condition on a source row and a target row with the same key.

    Attributes
    ----------
    filter
        Filter over the structs `source` and `target`, and over columns that only one of the two has.
    source_columns, target_columns
        Columns of the source and of the target that it reads.
    """

    filter: Filter
    source_columns: tuple[str, ...]
    target_columns: tuple[str, ...]

    @classmethod
    def compile(cls, text: str, source: pa.Schema, target: pa.Schema) -> PairCondition:
        """Compile a condition.

        Parameters
        ----------
        text
            SQL text.
        source, target
            Columns of the two sides in storage types.

        Raises
        ------
        FilterError, FieldNotFoundError
            It does not fit the columns, or names a column that both sides have without a prefix.
        """
        target = pa.schema([*target, *(SYSTEM_COLUMNS[name] for name in _ADDRESSES)])
        sides = {_SOURCE: source, _TARGET: target}
        common = set(source.names) & set(target.names)
        alone = [field for side in sides.values() for field in side if field.name not in common | sides.keys()]
        structs = [pa.field(name, pa.struct(list(side))) for name, side in sides.items()]
        try:
            bound = compile_filter(text, pa.schema([*structs, *alone]), tables=sides)
        except FieldNotFoundError as error:
            raise FieldNotFoundError(
                f"{error}; in a condition of when_matched_update_all, name columns as source.x or target.x"
            ) from error
        assert bound is not None
        return cls(bound, _read_of(bound, _SOURCE, source), _read_of(bound, _TARGET, target))

    def holds(self, source: pa.RecordBatch | None, target: pa.RecordBatch | None, num_rows: int) -> pa.BooleanArray:
        """Return a mask of the pairs for which the condition is true, given the columns that it reads; never null."""
        columns: dict[str, pa.Array] = {}
        for name, side in ((_SOURCE, source), (_TARGET, target)):
            if side is not None and side.num_columns:
                columns[name] = side.to_struct_array()
                bare = {path[0] for path in self.filter.field_paths} & set(side.schema.names) - {_SOURCE, _TARGET}
                columns |= {column: side.column(column) for column in bare}
        if not columns:
            return self.filter.mask(rows_only(num_rows, pa.schema([])))
        return self.filter.mask(pa.RecordBatch.from_pydict(columns))


def _read_of(bound: Filter, side: str, schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns of one side that a condition reads; all columns if it reads the side as a struct."""
    names: dict[str, None] = {}
    for path in bound.field_paths:
        if path == (side,):
            return tuple(schema.names)
        if path[0] == side:
            names[path[1]] = None
        elif path[0] in schema.names and path[0] not in (_SOURCE, _TARGET):
            names[path[0]] = None
    return tuple(names)
