"""Reasons why a scan does not use an index, for plans."""

from __future__ import annotations

import math

from lance_dataset.expr.tree import Expression
from lance_dataset.index.kinds import KINDS
from lance_dataset.index.open_segments import FieldIndex, IndexedValue
from lance_dataset.index.scalar.conditions import Answer
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.indexed.answering import estimated, scan_cost
from lance_dataset.scan.indexed.conditions import conditions_in, conditions_of
from lance_dataset.scan.indexed.lookups import Lookup, lookup_for
from lance_dataset.scan.pruning.prune import may_fail
from lance_dataset.scan.request import ScanRequest

__all__ = ["reasons_against_indices"]


def reasons_against_indices(
    reader: TableReader, request: ScanRequest, used_indices: tuple[str, ...]
) -> tuple[str, ...]:
    """Return a text for each index of a column of the filter that a scan does not use, and why.

    Parameters
    ----------
    reader
        The version of the table.
    request
        The scan, as it was before indices answered its filter.
    used_indices
        Descriptions of the lookups that were made.
    """
    if request.indices is None or request.filter is None or request.filter.tree is None:
        return ()
    tree, columns = request.filter.tree, set(request.filter.columns)
    names = {field.id: field.name for top in request.schema.fields if top.name in columns for field in top.walk()}
    used = "; ".join(used_indices)
    found = []
    for value, indices in request.indices.by_value.items():
        for index in indices:
            if value.field_id in names and f"@{index.name}(" not in used:
                shown = f"{index.name}({KINDS[index.kind].shown})"
                found.append(f"{shown} not used: {_reason(reader, request, tree, value, index, bool(used))}")
    return tuple(found)


def _reason(
    reader: TableReader, request: ScanRequest, tree: Expression, value: IndexedValue, index: FieldIndex, others: bool
) -> str:
    assert request.indices is not None
    assert request.filter is not None
    if request.include_deleted:
        return "deleted rows are wanted, too"
    if request.rows is not None:
        return "the filter names rows"
    if may_fail(tree):
        return "the filter may raise an error, so it is computed for all rows"
    by_value = request.indices.by_value
    asked = [each for each in conditions_in(tree, request.schema) if each.value == value]
    if not asked:
        return "no condition on the column that an index answers"
    forms = (form for each in asked for form in each.forms)
    if all(index.answers(form.condition, form.kind) is Answer.NONE for form in forms):
        return f"an index of this kind does not answer {asked[0].text}"
    if index.opening_cost > index.missed:
        return (
            f"opening it takes about {index.opening_cost / 1e6:.2g} ms, more than it could have saved so far "
            f"({index.missed / 1e6:.2g} ms)"
        )
    node = conditions_of(tree, request.schema, by_value.__contains__)
    lookup = None if node is None else lookup_for(node, {**by_value, value: (index,)}, math.inf)
    if lookup is None:
        return "another alternative of an OR has no index"
    if others:
        return "another index leaves fewer rows"
    return _costs(reader, request, lookup)


def _costs(reader: TableReader, request: ScanRequest, lookup: Lookup) -> str:
    assert request.filter is not None
    scan = scan_cost(reader, request, tuple(request.filter.columns))
    cost = estimated(lookup, reader, request)
    return (
        f"a scan is cheaper (about {scan / 1e6:.2g} ms; the index would take {cost / 1e6:.2g} ms, for up to "
        f"{lookup.estimate:,} rows)"
    )
