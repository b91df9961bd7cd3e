"""Filters over columns as they are stored: subexpressions of one column are computed once per dictionary entry.

A *part* of a filter is a largest subexpression that reads exactly one column and gives the same value for the same
input. It is computed for the entries of a dictionary (and for null, if there are nulls), and every row gets the result
at its index. The rest of the filter is computed from these results.

A part may fail for an entry that no row uses. Whatever fails is computed again over the decoded values, so errors are
those of `Filter.mask`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from functools import lru_cache, reduce
from typing import Any

import pyarrow as pa

from lance_dataset.expr.array_predicates import marked
from lance_dataset.expr.compiled import Filter
from lance_dataset.expr.evaluate import Evaluator, compile_tree
from lance_dataset.expr.tree import And, Call, Column, Constant, Expression, Or, walk
from lance_dataset.file.dictionaries import decode_dictionary_array
from lance_dataset.late_dataclass import dataclass
from lance_dataset.scan.encoded_column import EncodedValues, decoded, is_encoded

__all__ = ["columns_read", "mask_encoded"]

#: Exceptions that a part may raise for a value that no row has.
_FAILURES = (pa.ArrowException, ArithmeticError, ValueError, TypeError, LookupError)


def mask_encoded(filter: Filter, columns: Mapping[str, EncodedValues], num_rows: int) -> pa.BooleanArray:
    """Return True for the rows to keep, never null: the same as `Filter.mask` of the decoded columns.

    Parameters
    ----------
    filter
        The filter.
    columns
        The columns it reads, each with `num_rows` values in one or several chunks.
    num_rows
        Number of rows.

    Raises
    ------
    UnjoinableError
        The values of a column have to be joined into one array but do not fit.
    Exception
        As raised by `Filter.mask`.
    """
    if num_rows == 0:
        return pa.array([], pa.bool_())
    plan, encoded = _plan(filter), {}
    if plan is not None:
        encoded = {name: columns[name] for name in plan.columns}
        if any(is_encoded(chunk) for chunks in encoded.values() for chunk in chunks) or plan.is_one_part:
            try:
                return plan.mask(encoded, num_rows)
            except _FAILURES:
                pass
    arrays = [decoded(encoded.get(name, ()) or columns[name], name) for name in filter.columns]
    return filter.mask(_batch(arrays, list(filter.columns), num_rows))


def _batch(arrays: list[pa.Array], names: list[str], num_rows: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, names=names)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))


# -- plans -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Result(Expression):
    """Result of a part, as a column of the batch that the rest is computed from."""

    name: str


@compile_tree.register
def _(node: _Result) -> Evaluator:
    name = node.name
    return lambda batch: batch.column(name)


@dataclass(frozen=True)
class _Part:
    """A subexpression that reads one column.

    Attributes
    ----------
    name
        Name of the result in the batch for the rest.
    column
        The column.
    evaluator
        Computes the part over a batch with that column.
    """

    name: str
    column: str
    evaluator: Evaluator = field(compare=False)

    def compute(self, chunks: EncodedValues, *, as_mask: bool) -> pa.Array:
        """Compute the part for every row; with `as_mask`, nulls become false."""
        results = [self._compute(chunk, as_mask) for chunk in chunks]
        return results[0] if len(results) == 1 else pa.concat_arrays(results)

    def _compute(self, chunk: pa.Array, as_mask: bool) -> pa.Array:
        if not is_encoded(chunk):
            result = self._over(chunk)
            return result.fill_null(False) if as_mask and result.null_count else result
        if len(chunk) <= len(chunk.dictionary):
            return self._compute(decode_dictionary_array(chunk), as_mask)
        entries, indices = chunk.dictionary, chunk.indices
        if indices.null_count:
            entries = pa.concat_arrays([entries, pa.nulls(1, entries.type)])
        result = self._over(entries)
        if as_mask and result.null_count:
            result = result.fill_null(False)
        if pa.types.is_boolean(result.type) and not result.null_count:
            found = marked(indices, result.cast(pa.uint8()).to_numpy())
            return found.fill_null(result[-1]) if indices.null_count else found
        return result.take(indices.fill_null(len(entries) - 1) if indices.null_count else indices)

    def _over(self, values: pa.Array) -> pa.Array:
        datum = self.evaluator(pa.RecordBatch.from_arrays([values], names=[self.column]))
        return pa.repeat(datum, len(values)) if isinstance(datum, pa.Scalar) else datum


@dataclass(frozen=True)
class _Plan:
    """A filter split into parts and the rest.

    Attributes
    ----------
    parts
        The parts.
    plain
        Columns that the rest reads directly.
    rest
        Computes the filter over a batch of the results and these columns; None if one part is the whole filter.
    """

    parts: tuple[_Part, ...]
    plain: tuple[str, ...]
    rest: Evaluator | None = field(compare=False)

    @property
    def is_one_part(self) -> bool:
        """True if one part is the whole filter, so that no column has to be in one piece."""
        return self.rest is None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that the filter reads."""
        return tuple(dict.fromkeys([*(part.column for part in self.parts), *self.plain]))

    def mask(self, columns: Mapping[str, EncodedValues], num_rows: int) -> pa.BooleanArray:
        """Compute the mask; see `mask_encoded`."""
        if self.rest is None:
            return self.parts[0].compute(columns[self.parts[0].column], as_mask=True)
        arrays = [part.compute(columns[part.column], as_mask=False) for part in self.parts]
        names = [part.name for part in self.parts]
        for name in self.plain:
            arrays.append(decoded(columns[name], name))
            names.append(name)
        datum = self.rest(_batch(arrays, names, num_rows))
        result = pa.repeat(datum, num_rows) if isinstance(datum, pa.Scalar) else datum
        return result.fill_null(False) if result.null_count else result


@lru_cache(maxsize=64)
def _plan(filter: Filter) -> _Plan | None:
    """Split a filter into parts; None if it has none."""
    if filter.tree is None:
        return None
    maker = _Maker(filter.columns)
    rest = maker.split(filter.tree)
    if not maker.parts:
        return None
    if isinstance(rest, _Result):
        return _Plan(tuple(maker.parts), (), None)
    plain = dict.fromkeys(node.path[0] for node in walk(rest) if isinstance(node, Column))
    return _Plan(tuple(maker.parts), tuple(plain), compile_tree(rest))


class _Maker:
    """Splits a bound tree into parts and the rest."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.parts: list[_Part] = []
        self._taken = set(columns)

    def split(self, node: Expression) -> Expression:
        """Return the node with its parts replaced by their results."""
        if isinstance(node, Column | Constant):
            return node
        names, steady = columns_read(node)
        if not names:
            return node
        if len(names) == 1 and steady:
            return self._part(node, next(iter(names)))
        if isinstance(node, And | Or):
            node = replace(node, operands=self._grouped(node))
            return node if len(node.operands) > 1 else self.split(node.operands[0])
        changes = {}
        for member in fields(node):
            value = getattr(node, member.name)
            changed = self._changed(value)
            if changed is not value:
                changes[member.name] = changed
        return replace(node, **changes) if changes else node

    def _changed(self, value: Any) -> Any:
        if isinstance(value, Expression):
            return self.split(value)
        if isinstance(value, tuple) and any(isinstance(item, Expression) for item in value):
            items = tuple(self.split(item) if isinstance(item, Expression) else item for item in value)
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        return value

    def _grouped(self, node: And | Or) -> tuple[Expression, ...]:
        """Return the operands, with those of the same column combined into one."""
        groups: dict[str, list[Expression]] = {}
        others: list[Expression] = []
        for operand in node.operands:
            names, steady = columns_read(operand)
            if len(names) == 1 and steady:
                groups.setdefault(next(iter(names)), []).append(operand)
            else:
                others.append(self.split(operand))
        found: list[Expression] = []
        for name, operands in groups.items():
            whole = operands[0] if len(operands) == 1 else replace(node, operands=tuple(operands))
            found.append(whole if isinstance(whole, Column) else self._part(whole, name))
        return (*found, *others)

    def _part(self, node: Expression, column: str) -> _Result:
        name = f"part {len(self.parts)}"
        while name in self._taken:
            name += "'"
        self._taken.add(name)
        self.parts.append(_Part(name, column, compile_tree(node)))
        return _Result(name, type=node.type, position=node.position)


def columns_read(node: Expression) -> tuple[set[str], bool]:
    """Return the columns a node reads, and whether its value depends on nothing else."""
    nodes = list(walk(node))
    steady = all(part.function is not None and not part.function.volatile for part in nodes if isinstance(part, Call))
    return reduce(set.union, ({part.path[0]} for part in nodes if isinstance(part, Column)), set()), steady
