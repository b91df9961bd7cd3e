"""Steps of a plan, and their text form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from lance_dataset.scan.explain.plan_picture import PlanText
from lance_dataset.scan.explain.plan_text import SHOWN, bytes_text, counters_text, listed, part_of, seconds_text
from lance_dataset.scan.metrics import NodeMetrics, ScanMetrics
from lance_dataset.scan.request import Ordering

__all__ = [
    "ColumnPlan",
    "CountPlan",
    "FilterPlan",
    "FragmentPlan",
    "LatePlan",
    "LimitPlan",
    "PlanNode",
    "ProjectPlan",
    "RunTotals",
    "ScanPlan",
    "SortPlan",
    "rendered",
]


@dataclass(frozen=True)
class ColumnPlan:
    """A stored column as a scan reads it.

    Attributes
    ----------
    name
        Name of the top-level column.
    kind
        Arrow type of the part of the column that is read.
    stored_bytes
        Estimated bytes of its pages per row.
    """

    name: str
    kind: str
    stored_bytes: float

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}, about {self.stored_bytes:.3g} B per row"


@dataclass(frozen=True)
class FragmentPlan:
    """Rows of one fragment that a scan examines.

    Attributes
    ----------
    id
        Id of the fragment.
    files
        Paths of its data files, with their file versions.
    physical_rows, deleted_rows
        Rows in the files, and the number of them that are deleted (-1 if the manifest does not say).
    ranges
        Physical rows ``[start, stop)`` that are examined.
    """

    id: int
    files: tuple[str, ...]
    physical_rows: int
    deleted_rows: int
    ranges: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        """Number of rows that are examined."""
        return sum(stop - start for start, stop in self.ranges)

    def __str__(self) -> str:
        shown = ", ".join(f"{start}..{stop}" for start, stop in self.ranges[:SHOWN])
        rest = f" and {len(self.ranges) - SHOWN} more ranges" if len(self.ranges) > SHOWN else ""
        deleted = {-1: ", some deleted", 0: ""}.get(self.deleted_rows, f", {self.deleted_rows:,} deleted")
        files = ", ".join(self.files) or "no file"
        return f"fragment {self.id}: rows {shown or 'none'}{rest} of {self.physical_rows:,}{deleted}; {files}"


@dataclass(frozen=True)
class PlanNode:
    """A step of a scan.

    Attributes
    ----------
    child
        The step whose rows it works on.
    """

    child: PlanNode | None

    #: Name of its counters in `ScanMetrics`.
    metric: ClassVar[str | None] = None

    def summary(self) -> str:
        """Describe the step on one line."""
        return type(self).__name__.removesuffix("Plan")

    def details(self) -> Sequence[str]:
        """Return further details, one line each."""
        return ()


@dataclass(frozen=True)
class CountPlan(PlanNode):
    """Count rows; none is read if the manifest knows their number."""

    from_manifest: bool

    def summary(self) -> str:
        """Describe the step on one line."""
        return f"AggregateExec: count of {'rows, which the manifest knows' if self.from_manifest else 'remaining rows'}"


@dataclass(frozen=True)
class LimitPlan(PlanNode):
    """Skip rows, then stop after some."""

    skip: int
    fetch: int | None
    metric: ClassVar[str | None] = "limit"

    def summary(self) -> str:
        """Describe the step on one line."""
        return f"GlobalLimitExec: skip={self.skip}, fetch={self.fetch}"


@dataclass(frozen=True)
class SortPlan(PlanNode):
    """Sort by keys, whose columns are read first; `top` is the number of rows kept, None for all."""

    keys: tuple[Ordering, ...]
    top: int | None
    columns: tuple[ColumnPlan, ...]
    metric: ClassVar[str | None] = "sort"

    def summary(self) -> str:
        """Describe the step on one line."""
        keys = ", ".join(
            f"{key.column} {'ASC' if key.ascending else 'DESC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"
            for key in self.keys
        )
        top = "" if self.top is None else f"TopK(fetch={self.top}), "
        return f"SortExec: {top}expr=[{keys}]"

    def details(self) -> Sequence[str]:
        """Describe every key column."""
        return [str(column) for column in self.columns]


@dataclass(frozen=True)
class ProjectPlan(PlanNode):
    """Columns of the result, and the source of each."""

    names: tuple[str, ...]
    sources: tuple[str, ...]
    metric: ClassVar[str | None] = "project"

    def summary(self) -> str:
        """Describe the step on one line."""
        return f"ProjectionExec: expr=[{listed(self.names)}]"

    def details(self) -> Sequence[str]:
        """Describe the source of every column."""
        return self.sources


@dataclass(frozen=True)
class LatePlan(PlanNode):
    """Columns that are read only for the rows that the filter keeps."""

    columns: tuple[ColumnPlan, ...]
    metric: ClassVar[str | None] = "materialize"

    def summary(self) -> str:
        """Describe the step on one line."""
        size = sum(column.stored_bytes for column in self.columns)
        names = listed([column.name for column in self.columns])
        return f"LanceRead: projection=[{names}], source=stream(_rowid), about {size:.3g} B per row"

    def details(self) -> Sequence[str]:
        """Describe every column."""
        return [str(column) for column in self.columns]


@dataclass(frozen=True)
class FilterPlan(PlanNode):
    """Keep rows; the parts of a conjunction are computed in this order, each from the columns it reads.

    The `encoded` columns are compared in their stored form, without decoding them, wherever pages store plain or packed
    values.
    """

    text: str
    steps: tuple[tuple[str, ...], ...]
    is_compiled: bool
    encoded: tuple[str, ...] = ()
    metric: ClassVar[str | None] = "filter"

    def summary(self) -> str:
        """Describe the step on one line."""
        encoded = f", encoded=[{listed(self.encoded)}]" if self.encoded else ""
        return f"FilterExec: {' '.join(self.text.split())}{encoded}"

    def details(self) -> Sequence[str]:
        """Return the parts of the filter, and the engine that computes them."""
        lines = []
        if len(self.steps) > 1:
            order = "; then ".join(", ".join(step) or "no column" for step in self.steps)
            lines.append(f"conditions in this order, each for the rows kept so far: {order}")
        if not self.is_compiled:
            lines.append("computed by pyarrow for all rows: parts of it cannot be expressed as filter text")
        return lines


@dataclass(frozen=True)
class ScanPlan(PlanNode):
    """Read stored columns.

    Attributes
    ----------
    version
        Version of the table.
    columns
        Columns that are read for all examined rows.
    fragments, all_fragments
        Number of fragments examined, and number of all fragments.
    rows, all_rows
        Number of rows examined, and number of rows in all fragments, both including deleted ones.
    pruned
        Reasons why fragments and rows are left out.
    is_in_order
        True if rows come in storage order.
    window_rows, threads, batch_size
        Rows decoded together, threads that decode, rows of a batch.
    fetched_ahead
        Windows fetched at the same time from other machines; 0 if the files are local.
    by_fragment
        The fragments examined.
    """

    version: int
    columns: tuple[ColumnPlan, ...]
    fragments: int
    all_fragments: int
    rows: int
    all_rows: int
    pruned: tuple[str, ...]
    is_in_order: bool
    window_rows: int
    threads: int
    fetched_ahead: int
    batch_size: int
    by_fragment: tuple[FragmentPlan, ...]
    metric: ClassVar[str | None] = "scan"

    def summary(self) -> str:
        """Describe the step on one line."""
        size = self.rows * sum(column.stored_bytes for column in self.columns)
        said = [
            f"projection=[{listed([column.name for column in self.columns])}]",
            f"num_fragments={part_of(self.fragments, self.all_fragments)}",
            f"rows={part_of(self.rows, self.all_rows)}",
            f"version={self.version}",
            f"bytes=about {bytes_text(size)}",
            f"batch_size={self.batch_size}",
            f"order={'kept' if self.is_in_order else 'any'}",
        ]
        return f"LanceRead: {', '.join([*said, *self.pruned])}"

    def details(self) -> Sequence[str]:
        """Describe how the step works, every column, and every fragment."""
        threads = "the thread of the caller" if self.threads == 1 else f"{self.threads} threads"
        done = f"decoded by {threads}"
        if self.fetched_ahead:
            done = f"up to {self.fetched_ahead} of them fetched at the same time from another machine"
        lines = [f"windows of up to {self.window_rows:,} rows, {done}"]
        lines.extend(str(column) for column in self.columns)
        lines.extend(str(fragment) for fragment in self.by_fragment)
        return lines


@dataclass(frozen=True)
class RunTotals:
    """Totals of a whole run.

    Attributes
    ----------
    rows, batches, bytes
        Rows returned, number of batches, and their size in memory. There are no batches if rows were only counted.
    seconds
        Time from start to end.
    reads, read_bytes
        Reads from the store, and their bytes.
    """

    rows: int
    batches: int
    bytes: int
    seconds: float
    reads: int
    read_bytes: int

    def __str__(self) -> str:
        counted = self.rows > 0 and self.batches == 0
        returned = "counted" if counted else f"in {self.batches:,} batches, {bytes_text(self.bytes)}"
        read = f"read {bytes_text(self.read_bytes)} in {self.reads:,} requests"
        if self.rows and not self.reads:
            read += " (data that this dataset mapped or loaded before is not counted again)"
        return f"Total: {self.rows:,} rows {returned}, {seconds_text(self.seconds)}; {read}"


# -- text --------------------------------------------------------------------------------------------------------


def rendered(
    root: PlanNode, *, verbose: bool = False, metrics: ScanMetrics | None = None, totals: RunTotals | None = None
) -> PlanText:
    """Render a plan as text: one step per line, each below the step that consumes its rows.

    Steps and counters have the names of the reference, which programs look for.

    Parameters
    ----------
    root
        The outermost step.
    verbose
        Show the details of every step on lines of their own.
    metrics
        Counters of a run, shown beside the steps.
    totals
        Totals of the run, shown at the end.
    """
    lines: list[str] = []
    node: PlanNode | None = root
    depth = 0
    counters = {} if metrics is None else _counters(root, metrics)
    while node is not None:
        indent = "   " * (depth - 1) + "└─ " if depth else ""
        counted = None if node.metric is None else counters.get(node.metric)
        lines.append(indent + node.summary() + ("" if counted is None else f", metrics=[{counted}]"))
        if verbose:
            bar = "   " * depth + ("│  " if node.child is not None else "   ")
            lines.extend(f"{bar}{line}" for line in node.details())
        node, depth = node.child, depth + 1
    if totals is not None:
        lines.append(str(totals))
    return PlanText("\n".join(lines))


def _counters(root: PlanNode, metrics: ScanMetrics) -> dict[str, str]:
    """Format the counters of the steps that are shown, keyed by the names of the counters."""
    shown: set[str | None] = set()
    node: PlanNode | None = root
    while node is not None:
        shown.add(node.metric)
        node = node.child
    nodes = dict(metrics.nodes)
    if LatePlan.metric not in shown and ScanPlan.metric in nodes and LatePlan.metric in nodes:
        nodes[ScanPlan.metric] = _together(nodes[ScanPlan.metric], nodes[LatePlan.metric])
    found = {name: counters_text(each) for name, each in nodes.items()}
    if FilterPlan.metric in found:
        found[FilterPlan.metric] += ", its time is part of the scan"
    return found


def _together(scan: NodeMetrics, rest: NodeMetrics) -> NodeMetrics:
    """Combine the counters of a scan with those of the step that reads its output, which is counted separately."""
    both = NodeMetrics()
    both.add(
        scan.rows,
        batches=scan.batches,
        bytes=scan.bytes + rest.bytes,
        seconds=scan.seconds + rest.seconds,
        **scan.counts,
    )
    return both
