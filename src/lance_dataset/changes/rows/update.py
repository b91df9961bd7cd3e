"""Updates: rows that match a condition get new values in some columns, and move to new fragments."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.changes.fragments.row_moves import commit_row_moves, prepare_row_moves
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.errors import FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError, nearest_name_hint
from lance_dataset.expr.compiled import BoundExpression, compile_expression, compile_filter, converted
from lance_dataset.file.blob_fields import undescribed
from lance_dataset.file.options import is_blob_v2
from lance_dataset.memory import MemoryUse, share_of_memory
from lance_dataset.read.fragment_reader import SYSTEM_COLUMNS
from lance_dataset.read.projection import OutputColumn, Projection, full_schema
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.request import DEFAULT_BATCH_SIZE, ScanRequest
from lance_dataset.scan.resolving import indices_for_scans
from lance_dataset.scan.scan import scan_batches
from lance_dataset.scan.strategy import PIECE_BYTES
from lance_dataset.table.row_addresses import by_fragment, split_address
from lance_dataset.types.schema import Field, Schema

__all__ = ["update_rows"]

#: Maximum and minimum number of rows in a batch.
_MOST_ROWS = 1 << 16
_LEAST_ROWS = 1 << 10

_TEXTS = frozenset({"string", "large_string"})
#: What separates a hint from a message: that of a filter ends with an excerpt of its text.
_NEXT: Mapping[type[Exception], str] = {FieldNotFoundError: "; ", FilterError: "\n"}
#: System columns that are read as well: row addresses and, if the table has stable ones, row ids.
_LOCATED = ("_rowaddr", "_rowid")


def update_rows(
    snapshot: Snapshot,
    updates: Mapping[str, str],
    where: str | pc.Expression | None,
    storage_version: str | None,
    conflict_retries: int | None,
    retry_timeout: dt.timedelta | None,
    metrics: Callable[[], ScanMetrics | None] = lambda: None,
) -> tuple[Snapshot, int]:
    """Update rows of a snapshot, in one commit.

    Parameters
    ----------
    snapshot
        Version to change.
    updates
        SQL expressions by column. They read the old values of a row, so that columns can be swapped.
    where
        Condition on the rows to update; None for all rows.
    storage_version
        File version of the new fragments; None for that of the table.
    metrics
        Makes the metrics of the scan of each attempt.
    conflict_retries, retry_timeout
        See `repeated_on_conflict`.

    Returns
    -------
    snapshot : Snapshot
        The new version.
    num_rows : int
        Number of updated rows.

    Raises
    ------
    FieldNotFoundError, FilterError
        A column does not exist, or an expression does not fit the schema.
    InvalidInputError
        `updates` is empty, or an expression fails for a value.
    SchemaError
        A new value is null, but its column is not nullable.
    CommitConflictError
        Other writers changed the same rows, or made another conflicting change, and the retries ran out.
    """
    return repeated_on_conflict(
        snapshot,
        lambda latest: _update(latest, updates, where, storage_version, metrics()),
        conflict_retries,
        retry_timeout,
    )


def _update(
    snapshot: Snapshot,
    updates: Mapping[str, str],
    where: str | pc.Expression | None,
    storage_version: str | None,
    metrics: ScanMetrics | None,
) -> tuple[Snapshot, int]:
    assignments = _assignments(snapshot, updates)
    old = _OldRows()
    schema, stable = snapshot.manifest.schema, snapshot.manifest.uses_stable_row_ids
    batches = old.taken_from(_updated_batches(snapshot, assignments, where, metrics), with_ids=stable)
    changed = [node.id for name in assignments for node in schema.top_level(name).walk()]
    moves = prepare_row_moves(
        snapshot, old.offsets, schema, batches, old.row_ids, fields=changed, storage_version=storage_version
    )
    return commit_row_moves(snapshot, moves), old.num_rows


# -- assignments -----------------------------------------------------------------------------------------------------


def _assignments(snapshot: Snapshot, updates: Mapping[str, str]) -> dict[str, BoundExpression]:
    """Compile the expressions by top-level column, and convert them to the types of the columns."""
    if not isinstance(updates, Mapping):
        raise TypeError(f"updates must be a dict of SQL expressions by column, not {type(updates).__name__}")
    if not updates:
        raise InvalidInputError("No updates provided: name the columns to change, and an SQL expression for each")
    readable = snapshot.scanned_schema.storage_arrow
    found: dict[str, BoundExpression] = {}
    for name, text in updates.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"updates must map columns to SQL expressions, both as text, not {name!r} to {text!r}")
        target = _target(snapshot.manifest.schema, name)
        if any(is_blob_v2(node) for node in target.walk()):
            raise UnsupportedError(
                f"Direct updates to column {name!r} containing blob v2 values are not supported; pass new values to "
                "merge_insert"
            )
        expression = _compiled(name, text, target, readable)
        # JSON text is converted to its stored form when it is written.
        is_json = target.logical_type == "json"
        assigned = expression if is_json else converted(expression, target.storage_type)
        found[name] = _assignment(name, assigned)
    return found


def _compiled(column: str, text: str, target: Field, schema: pa.Schema) -> BoundExpression:
    """Compile the expression of a column. Errors say how to write a text."""
    try:
        return compile_expression(text, schema)
    except (FieldNotFoundError, FilterError) as error:
        if target.logical_type not in _TEXTS or "'" in text:
            raise
        hint = f"if {text} is meant as text, quote it: {{{column!r}: \"'{text}'\"}}"
        raise type(error)(f"column {column!r}: {error}{_NEXT[type(error)]}{hint}") from error


def _assignment(column: str, expression: BoundExpression) -> BoundExpression:
    """Return an expression whose errors name the column that it computes."""

    def evaluate(batch: pa.RecordBatch) -> pa.Array:
        try:
            return expression.evaluate(batch)
        except (pa.ArrowException, OverflowError) as error:
            raise InvalidInputError(f"column {column!r}: {expression} fails for a value: {error}") from error

    return BoundExpression(evaluate, str(expression), expression.type, expression.field_paths, expression.tree)


def _target(schema: Schema, name: str) -> Field:
    if name in schema.names:
        return schema.top_level(name)
    try:
        schema.resolve(name)
    except FieldNotFoundError as error:
        known = nearest_name_hint(name, schema.names)
        raise FieldNotFoundError(f"Column {name!r} does not exist in the dataset schema{known}") from error
    raise UnsupportedError(
        f"{name!r} is nested: update the whole column, with named_struct() and the fields that do not change"
    )


# -- rows ------------------------------------------------------------------------------------------------------------


@dataclass
class _OldRows:
    """Old offsets of updated rows, and their ids. They are complete after all rows are read.

    Attributes
    ----------
    offsets
        Physical offsets by fragment id.
    """

    offsets: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    _found: dict[int, list[NDArray[np.uint32]]] = field(default_factory=dict)
    _ids: list[NDArray[np.uint64]] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        """Number of updated rows."""
        return sum(len(rows) for rows in self.offsets.values())

    def row_ids(self) -> NDArray[np.uint64]:
        """Return the row ids in the order in which the rows were read."""
        return np.concatenate([np.empty(0, np.uint64), *self._ids])

    def taken_from(self, batches: Iterable[pa.RecordBatch], *, with_ids: bool) -> Iterator[pa.RecordBatch]:
        """Keep the row address and perhaps the row id of batches in storage order; yield the batches without these."""
        for batch in batches:
            names = batch.schema.names
            if with_ids:
                self._ids.append(batch.column(names.pop()).to_numpy())
            self._note(batch.column(names.pop()).to_numpy())
            yield batch.select(names)
        for fragment_id, parts in self._found.items():
            self.offsets[fragment_id] = np.concatenate(parts).astype(np.int64)
        self._found.clear()

    def _note(self, addresses: NDArray[np.uint64]) -> None:
        """Keep the offsets of rows that are sorted by their addresses."""
        (first, _), (last, _) = split_address(int(addresses[0])), split_address(int(addresses[-1]))
        rows = addresses.astype(np.uint32)  # the lower half
        if first == last:
            self._found.setdefault(first, []).append(rows)
            return
        for fragment_id, mine in by_fragment(addresses):
            self._found.setdefault(fragment_id, []).append(rows[mine])


def _updated_batches(
    snapshot: Snapshot,
    assignments: Mapping[str, BoundExpression],
    where: str | pc.Expression | None,
    metrics: ScanMetrics | None,
) -> Iterator[pa.RecordBatch]:
    """Read the rows to update, with their new values, row address and perhaps row id."""
    schema, stable = snapshot.scanned_schema, snapshot.manifest.uses_stable_row_ids
    request = ScanRequest(
        schema,
        _projection(schema, assignments, _LOCATED if stable else _LOCATED[:1]),
        filter=compile_filter(where, full_schema(schema)),
        batch_size=_batch_rows(snapshot),
        indices=indices_for_scans(snapshot),
        metrics=metrics,
    )
    try:
        yield from scan_batches(snapshot.reader, request)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"the condition of the update fails for a value: {error}") from error


def _projection(schema: Schema, assignments: Mapping[str, BoundExpression], system: Sequence[str]) -> Projection:
    outputs = []
    for top in schema.fields:
        expression = assignments.get(top.name)
        if expression is None:
            stored = undescribed(top)
            outputs.append(OutputColumn(stored.to_arrow(), stored))
        else:
            outputs.append(OutputColumn(pa.field(top.name, expression.type), expression=expression))
    outputs += [OutputColumn(SYSTEM_COLUMNS[name], system=name) for name in system]
    return Projection(tuple(outputs), pa.schema([output.arrow for output in outputs]))


def _batch_rows(snapshot: Snapshot) -> int:
    """Return the number of rows to read together."""
    widest = max((fragment.bytes_per_row for fragment in snapshot.reader.fragments[:1]), default=1.0)
    return min(
        max(int(share_of_memory(PIECE_BYTES, MemoryUse.BATCHES) / widest), _LEAST_ROWS),
        max(_MOST_ROWS, DEFAULT_BATCH_SIZE),
    )
