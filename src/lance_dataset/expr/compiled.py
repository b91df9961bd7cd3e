"""Compiled filters and expressions, as scanners hold them while they run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import FilterError
from lance_dataset.expr.arrow_expr import columns_read, expression_type, run_expression
from lance_dataset.expr.arrow_tree import arrow_tree
from lance_dataset.expr.bind import bind
from lance_dataset.expr.casts import cast_kernel
from lance_dataset.expr.evaluate import Evaluator, compile_tree
from lance_dataset.expr.functions.list_layout import repeated
from lance_dataset.expr.lexer import Token, split_literals, tokenize
from lance_dataset.expr.parse import parse
from lance_dataset.expr.shapes import BySchema, FilterShape
from lance_dataset.expr.tree import Cast, Column, Constant, Expression, walk
from lance_dataset.expr.type_rules import is_text
from lance_dataset.types.geoarrow import GEOMETRY
from lance_dataset.types.logical import EXTENSION_NAME

__all__ = ["BoundExpression", "Filter", "compile_expression", "compile_filter", "converted", "finished"]


_Found = TypeVar("_Found")


class BoundExpression:
    """An expression ready to run over batches.

    Attributes
    ----------
    type
        Arrow type of the values.
    columns
        Names of the top-level columns that the expression reads, in schema order.
    field_paths
        Paths of the columns and nested fields that the expression reads, in schema order.
    """

    __slots__ = ("_evaluator", "_text", "_tree", "columns", "field_paths", "type")

    def __init__(
        self,
        evaluator: Evaluator | None,
        text: str,
        type: pa.DataType,
        field_paths: tuple[tuple[str, ...], ...],
        tree: Expression | Callable[[], Expression] | None,
    ) -> None:
        self._evaluator = evaluator
        self._text = text
        self.type = type
        self.field_paths = field_paths
        self.columns: tuple[str, ...] = tuple(dict.fromkeys(path[0] for path in field_paths))
        self._tree = tree

    @property
    def tree(self) -> Expression | None:
        """The bound tree; None if the expression was given as a pyarrow expression."""
        tree = self._tree
        if tree is None or isinstance(tree, Expression):
            return tree
        self._tree = made = tree()
        return made

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._text!r})"

    def evaluate(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        """Compute the value for every row: an array for a batch, a chunked array for a table.

        Raises
        ------
        InvalidInputError
            The batch lacks a column that the expression reads.
        pyarrow.ArrowInvalid
            The expression cannot handle a value, for example in a failing CAST or an integer division by zero.
        """
        if isinstance(batch, pa.Table):
            return pa.chunked_array([self._array(part) for part in batch.to_batches()], self.type)
        return self._array(batch)

    def _array(self, batch: pa.RecordBatch) -> pa.Array:
        evaluator = self._evaluator
        if evaluator is None:
            tree = self.tree
            if tree is None:
                raise TypeError("an expression without an evaluator has a tree")
            self._evaluator = evaluator = compile_tree(tree)
        datum = evaluator(batch)
        return repeated(datum, batch.num_rows)


class Filter(BoundExpression):
    """A boolean expression; rows where it is null are dropped."""

    __slots__ = ("_findings",)
    _findings: dict[Callable[[Filter], Any], Any]

    def finding(self, find: Callable[[Filter], _Found]) -> _Found:
        """Return what a function finds out about the filter. It is computed once, and kept as long as the filter."""
        try:
            known = self._findings
        except AttributeError:
            known = self._findings = {}
        if find in known:
            return known[find]  # type: ignore[no-any-return]
        return known.setdefault(find, find(self))  # type: ignore[no-any-return]

    def mask(self, batch: pa.RecordBatch | pa.Table) -> pa.BooleanArray | pa.ChunkedArray:
        """Return True for the rows to keep, never null. Errors are those of `evaluate`."""
        if isinstance(batch, pa.Table):
            return pa.chunked_array([self.mask(part) for part in batch.to_batches()], pa.bool_())
        array = self._array(batch)
        return array.fill_null(False) if array.null_count else array


def compile_filter(
    filter: str | pc.Expression | None, schema: pa.Schema, *, tables: Collection[str] = ()
) -> Filter | None:
    """Compile a filter for a schema.

    Parameters
    ----------
    filter
        Filter text, a pyarrow expression, or None for no filter.
    schema
        Columns that the filter may read, special columns included.
    tables
        As in `bind`.

    Returns
    -------
    Filter or None
        None if `filter` is None.

    Raises
    ------
    FilterError
        The text cannot be parsed, does not fit the types, or is not boolean.
    FieldNotFoundError
        The filter names a column that the schema lacks.
    """
    if filter is None:
        return None
    if isinstance(filter, pc.Expression):
        tree = arrow_tree(filter, schema)
        if tree is not None:
            return Filter(compile_tree(tree), str(filter), tree.type, _field_paths(tree, schema), tree)
        arrow = expression_type(filter, schema)
        _require_boolean(arrow, str(filter))
        columns = columns_read(filter, schema)
        paths = tuple((name,) for name in columns)
        return Filter(run_expression(filter, columns), str(filter), arrow, paths, None)
    if not isinstance(filter, str):
        raise TypeError(f"A filter is a string or a pyarrow expression, not {type(filter).__name__}")
    known = _FILTERS.of_schema(schema) if not tables else {}
    found = known.get(filter)
    if found is not None:
        return found
    if tables or len(filter) > _MOST_CHARACTERS:
        tree, _, _ = _bound_filter(filter, schema, tables)
        return Filter(compile_tree(tree), filter, tree.type, _field_paths(tree, schema), tree)
    made, has_shape = _shaped(filter, schema)
    if has_shape:  # and so no functions, whose values may change
        known[filter] = made
    return made


def compile_expression(text: str, schema: pa.Schema) -> BoundExpression:
    """Compile an expression for a column, such as ``a + 1``; parameters and errors are those of `compile_filter`."""
    tree = _bound_tree(text, schema, projection=True)
    return BoundExpression(compile_tree(tree), text, tree.type, _field_paths(tree, schema), tree)


def converted(expression: BoundExpression, target: pa.DataType) -> BoundExpression:
    """Return the expression with its values converted to a type, as in the assignment of an UPDATE.

    Parameters
    ----------
    expression
        The expression, compiled from text.
    target
        The target type.

    Raises
    ------
    FilterError
        The type of the expression never converts to the target, or a constant does not.
    """
    tree = expression.tree
    if tree is None or tree.type.equals(target):
        return expression
    kernel = cast_kernel(tree.type, target, lenient=False)
    if kernel is None or (is_text(tree.type) and pa.types.is_fixed_size_binary(target)):
        raise FilterError(f"{expression}: cannot convert {tree.type} to {target}; write a CAST that says how")
    if isinstance(tree, Constant):
        try:
            tree = Constant(kernel(tree.value), type=target, position=tree.position)
        except (pa.ArrowException, OverflowError) as error:
            raise FilterError(f"{expression}: the value does not convert to {target}: {error}") from error
    else:
        tree = Cast(tree, target, type=target, position=tree.position)
    return BoundExpression(compile_tree(tree), str(expression), target, expression.field_paths, tree)


def finished(expression: BoundExpression) -> BoundExpression:
    """Return the expression with its values as a column has them: geometries of several kinds are a union."""
    metadata = None if expression.tree is None else expression.tree.metadata
    if metadata is None or metadata.get(EXTENSION_NAME.encode()) != GEOMETRY.encode():
        return expression
    from lance_dataset.expr.geometry.results import mixed_array, mixed_type

    def evaluate(batch: pa.RecordBatch) -> pa.Array:
        return mixed_array(expression.evaluate(batch))

    return BoundExpression(evaluate, str(expression), mixed_type(), expression.field_paths, expression.tree)


def _shaped(text: str, schema: pa.Schema) -> tuple[Filter, bool]:
    """Compile a filter, and say whether it has a shape.

    Filters that differ only in their constants have one shape, and are bound once. Their trees are made when they are
    needed, because a filter that is asked for again and again may be applied only now and then.
    """
    rest, literals = split_literals(text)
    known = _SHAPES.of_schema(schema)
    alike = known.get(rest)
    make = None if alike is None else alike.with_literals(literals)
    if alike is not None and make is not None:
        return Filter(None, text, alike.tree.type, alike.field_paths, make), True
    tree, parsed, tokens = _bound_filter(text, schema, ())
    paths = _field_paths(tree, schema)
    shape = FilterShape.of(parsed, tree, paths, tokens, literals) if len(tokens) <= _MOST_TOKENS else None
    if shape is not None:
        known[rest] = shape
    return Filter(compile_tree(tree), text, tree.type, paths, tree), shape is not None


def _bound_filter(text: str, schema: pa.Schema, tables: Collection[str]) -> tuple[Expression, Expression, list[Token]]:
    """Return a filter as a bound tree, as it was parsed, and its tokens."""
    tokens = tokenize(text)
    try:
        parsed = parse(text, tokens)
        tree = bind(parsed, schema, text, tables=tables)
    except RecursionError:
        raise FilterError("The filter is nested too deeply") from None
    _require_boolean(tree.type, text)
    return tree, parsed, tokens


#: Longer filters and their shapes are not kept, because they would take up memory.
_MOST_TOKENS = 256
_MOST_CHARACTERS = 1 << 16
#: Shapes by what their filters have in common, which `split_literals` returns.
_SHAPES: BySchema[tuple[str, ...], FilterShape] = BySchema()
#: Filters that were compiled before, by their text: programs make scanners with the same filter again and again.
_FILTERS: BySchema[str, Filter] = BySchema()


def _bound_tree(text: str, schema: pa.Schema, *, projection: bool, tables: Collection[str] = ()) -> Expression:
    try:
        return bind(parse(text), schema, text, projection=projection, tables=tables)
    except RecursionError:
        raise FilterError("The filter is nested too deeply") from None


def _require_boolean(arrow: pa.DataType, text: str) -> None:
    if not pa.types.is_boolean(arrow):
        raise FilterError(f"The filter {text} does not return a boolean but {arrow}")


def _field_paths(tree: Expression, schema: pa.Schema) -> tuple[tuple[str, ...], ...]:
    paths: dict[Any, None] = dict.fromkeys(node.path for node in walk(tree) if isinstance(node, Column))
    if len(paths) < 2:
        return tuple(paths)
    order = {name: place for place, name in enumerate(schema.names)}
    return tuple(sorted(paths, key=lambda path: (order[path[0]], path[1:])))
