"""The condition of a merge on pairs of a source row and the target row that it matches."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError
from lance_dataset.query.expr import Filter, compile_filter
from lance_dataset.query.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.query.shapes import rows_only

__all__ = ["PairCondition"]

_SOURCE, _TARGET = "source", "target"
#: Columns of the table that conditions on pairs may name besides those of its schema.
_ADDRESSES = ("_rowid", "_rowaddr")


@dataclass(frozen=True)
class PairCondition:
    """A condition on a source row and a target row with its key.

    Attributes
    ----------
    filter
        Over the structs `source` and `target`, and columns that only one of the two has.
    source_columns, target_columns
        Columns that it reads of either.
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
            SQL.
        source, target
            Columns of either side as storage types.

        Raises
        ------
        FilterError, FieldNotFoundError
            It does not fit the columns, or names one without a prefix that both have.
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
                f"{error}; columns of a condition of when_matched_update_all are named source.x or target.x"
            ) from error
        assert bound is not None
        return cls(bound, _read_of(bound, _SOURCE, source), _read_of(bound, _TARGET, target))

    def holds(self, source: pa.RecordBatch | None, target: pa.RecordBatch | None, num_rows: int) -> pa.BooleanArray:
        """Whether it is true of pairs, given the columns that it reads; never null."""
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
    """Columns of one side that a condition reads; all of them where it reads the side as a whole."""
    names: dict[str, None] = {}
    for path in bound.field_paths:
        if path == (side,):
            return tuple(schema.names)
        if path[0] == side:
            names[path[1]] = None
        elif path[0] in schema.names and path[0] not in (_SOURCE, _TARGET):
            names[path[0]] = None
    return tuple(names)
