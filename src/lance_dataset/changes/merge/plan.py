"""Plan of a merge as text: its steps, followed by those of the scan of the table's keys."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from lance_dataset.changes.merge.clauses import MergeClauses, WhenMatched, WriteMode
from lance_dataset.changes.merge.columns import MergeColumns
from lance_dataset.changes.merge.execution import Merge, MergeOptions, discard_merge
from lance_dataset.changes.merge.in_place import ColumnChanges, why_not_in_place
from lance_dataset.changes.merge.matching import matching_scan
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.explain.plan import scan_plan
from lance_dataset.scan.explain.plan_nodes import PlanNode, rendered
from lance_dataset.scan.explain.plan_picture import PlanText
from lance_dataset.scan.explain.plan_text import seconds_text
from lance_dataset.scan.metrics import ScanMetrics

__all__ = ["analyzed_plan", "explained_plan"]


@dataclass(frozen=True)
class MergePlan(PlanNode):
    """Plan node that writes the changes of a merge.

    Attributes
    ----------
    clauses
        Clauses of the merge.
    columns
        Columns of its source.
    in_place
        True if rows stay in place; None if the sizes decide that.
    """

    clauses: MergeClauses
    columns: MergeColumns
    in_place: bool | None
    metric: ClassVar[str | None] = "merge"

    def summary(self) -> str:
        """Return the step on one line."""
        return f"MergeInsert: {self.clauses.summary}"

    def details(self) -> Sequence[str]:
        """Return lines that tell what is written, and where its values come from."""
        lines = [_writes(self.clauses, self.in_place)]
        if self.columns.given is not None:
            lines.append(f"from the source: {', '.join(field.name for field in self.columns.given.fields)}")
            if self.columns.target_columns:
                lines.append(f"kept of updated rows: {', '.join(self.columns.target_columns)}")
        return lines


def _writes(clauses: MergeClauses, in_place: bool | None) -> str:
    if not clauses.writes_source:
        return "writes deletion files only"
    if in_place:
        return "writes new files for the columns of the source; rows stay where they are"
    rows = "writes new rows behind all others, masks those that they replace"
    return rows if in_place is False else f"{rows}; or only new column files, if these are much smaller"


@dataclass(frozen=True)
class LookUpPlan(PlanNode):
    """Plan node that looks up the keys of the table among those of the source.

    Attributes
    ----------
    keys
        Key columns.
    source_rows
        Number of rows of the source; None before it is read.
    """

    keys: tuple[str, ...]
    source_rows: int | None = None
    metric: ClassVar[str | None] = "look up"

    def summary(self) -> str:
        """Return the step on one line."""
        known = "" if self.source_rows is None else f" of {self.source_rows:,} rows"
        pairs = ", ".join(f"({key}, {key})" for key in self.keys)
        return f"HashJoinExec: on=[{pairs}], in a hash table of the source{known}"


def explained_plan(
    snapshot: Snapshot, clauses: MergeClauses, options: MergeOptions, schema: pa.Schema, verbose: bool
) -> PlanText:
    """Return the plan of a merge whose source has a given schema; raises like `Merge.collect`.

    Parameters
    ----------
    snapshot
        Version to change.
    clauses, options
        Clauses of the merge, and options for its files.
    schema
        Schema of the source.
    verbose
        True to show details of every step.
    """
    merge = Merge.collect(snapshot.manifest.schema, clauses, options, schema, ())
    with merge.source:
        columns, matching = merge.resolved(snapshot)
        scan = scan_plan(snapshot.reader, matching_scan(snapshot, matching))
        in_place = clauses.write_mode is WriteMode.COLUMNS
        may = clauses.write_mode is WriteMode.AUTO and why_not_in_place(clauses, columns) is None
        root = MergePlan(LookUpPlan(scan, clauses.on), clauses, columns, None if may else in_place)
        return rendered(root, verbose=verbose)


def analyzed_plan(snapshot: Snapshot, merge: Merge) -> PlanText:
    """Run a merge without committing it, remove its files, and return its plan with the measurements of each step."""
    metrics, start = ScanMetrics(), time.perf_counter()
    prepared = merge.prepare(snapshot, metrics)
    try:
        seconds = time.perf_counter() - start
        columns, matching = merge.resolved(snapshot)
        node = metrics.node("merge")
        operation = prepared.operation
        new = [file for fragment in operation.new_fragments for file in fragment.files]
        if isinstance(prepared.change, ColumnChanges):
            new = list(prepared.change.files)
        size = sum(file.file_size_bytes or 0 for file in new)
        node.add(
            prepared.inserted + prepared.updated,
            seconds=seconds,
            bytes_written=size,
            num_files_written=len(new),
            **prepared.statistics,
        )
        found = prepared.updated if merge.clauses.matched is WhenMatched.UPDATE else prepared.deleted
        metrics.node("look up").add(found)
        look_up = LookUpPlan(
            scan_plan(snapshot.reader, matching_scan(snapshot, matching)),
            merge.clauses.on,
            merge.source.num_rows,
        )
        in_place = isinstance(prepared.change, ColumnChanges)
        text = rendered(MergePlan(look_up, merge.clauses, columns, in_place), metrics=metrics)
        return PlanText(f"{text}\nTotal: {seconds_text(seconds)}; nothing was committed")
    finally:
        discard_merge(snapshot, prepared)
