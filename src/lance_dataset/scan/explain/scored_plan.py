"""Steps of the plan of a search that follow finding its rows."""

from __future__ import annotations

from dataclasses import replace

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.costs import ColumnCosts
from lance_dataset.scan.explain.plan_nodes import (
    ColumnPlan,
    FilterPlan,
    LatePlan,
    LimitPlan,
    PlanNode,
    ProjectPlan,
    SortPlan,
)
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scored_rows import UNLIMITED_ROWS, ScoredRequest

__all__ = ["scored_plan"]


def scored_plan(reader: TableReader, node: PlanNode, wanted: ScoredRequest, candidates: ScanRequest) -> PlanNode:
    """Return the plan of a search, outermost step first.

    Parameters
    ----------
    reader
        The version.
    node
        The step that finds the rows.
    wanted
        What happens with them.
    candidates
        Scan of the rows that may be found.
    """
    if wanted.postfilter is not None:
        steps = (wanted.postfilter.columns,)
        node = FilterPlan(node, str(wanted.postfilter), steps, wanted.postfilter.tree is not None)
    if wanted.order_by:
        node = SortPlan(node, wanted.order_by, None, ())
    if wanted.offset or wanted.limit < UNLIMITED_ROWS:
        node = LimitPlan(node, wanted.offset, wanted.limit if wanted.limit < UNLIMITED_ROWS else None)
    output = wanted.output
    costs = ColumnCosts.of(reader, replace(candidates, projection=output.projection, filter=None))
    fields = {each.field.name: each.field for each in output.projection.columns if each.field is not None}
    taken = tuple(ColumnPlan(name, str(each.to_arrow().type), costs.cost(each).stored) for name, each in fields.items())
    if taken:
        node = LatePlan(node, taken)
    return ProjectPlan(node, tuple(output.schema.names), tuple(f"{each.name}: {each.type}" for each in output.schema))
