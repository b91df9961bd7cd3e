"""The plan of a scan: a tree of steps that a person can read, with what each step did once the scan has run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.query.metrics import NodeMetrics, ScanMetrics
from lance_dataset.query.projection import OutputColumn, Projection
from lance_dataset.query.request import Ordering, ScanRequest
from lance_dataset.query.row_pruning import narrowed
from lance_dataset.query.strategy import ScanStrategy, strategy
from lance_dataset.query.table_reader import TableReader
from lance_dataset.query.windows import Pruning, Slice, Window, fragments_of

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
    "counting_plan",
    "rendered",
    "scan_plan",
]

#: Names and ranges that are shown before the rest is only counted.
_SHOWN = 12
#: Fragments whose statistics are looked at unless a plan is to be thorough: it opens their files.
_FEW_FRAGMENTS = 16


# -- nodes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnPlan:
    """A stored column as a scan reads it.

    Attributes
    ----------
    name
        Name of the top-level column.
    kind
        Its Arrow type, of what is read of it.
    stored_bytes
        Estimated bytes of its pages per row.
    """

    name: str
    kind: str
    stored_bytes: float

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}, about {self.stored_bytes:.3g} B a row"


@dataclass(frozen=True)
class FragmentPlan:
    """What a scan looks at in one fragment.

    Attributes
    ----------
    id
        Id of the fragment.
    files
        Paths of its data files, with their file versions.
    physical_rows, deleted_rows
        Rows in the files, and how many of these are deleted (-1 where the manifest does not say).
    ranges
        Physical rows ``[start, stop)`` that are looked at.
    """

    id: int
    files: tuple[str, ...]
    physical_rows: int
    deleted_rows: int
    ranges: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        """Rows that are looked at."""
        return sum(stop - start for start, stop in self.ranges)

    def __str__(self) -> str:
        shown = ", ".join(f"{start}..{stop}" for start, stop in self.ranges[:_SHOWN])
        rest = f" and {len(self.ranges) - _SHOWN} ranges more" if len(self.ranges) > _SHOWN else ""
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
        """The step on one line."""
        return type(self).__name__.removesuffix("Plan")

    def details(self) -> Sequence[str]:
        """What else there is to say, a line each."""
        return ()


@dataclass(frozen=True)
class CountPlan(PlanNode):
    """Count rows; none of them is read where the manifest knows their number."""

    from_manifest: bool

    def summary(self) -> str:
        """The step on one line."""
        return "Count: the manifest knows" if self.from_manifest else "Count: rows that are left"


@dataclass(frozen=True)
class LimitPlan(PlanNode):
    """Skip rows, then stop after some."""

    skip: int
    fetch: int | None
    metric: ClassVar[str | None] = "limit"

    def summary(self) -> str:
        """The step on one line."""
        return f"Limit: skip={self.skip}, fetch={'all' if self.fetch is None else self.fetch}"


@dataclass(frozen=True)
class SortPlan(PlanNode):
    """Sort by keys, whose columns are read first; `top` is how many rows are kept of it, None for all."""

    keys: tuple[Ordering, ...]
    top: int | None
    columns: tuple[ColumnPlan, ...]
    metric: ClassVar[str | None] = "sort"

    def summary(self) -> str:
        """The step on one line."""
        keys = ", ".join(
            f"{key.column} {'ASC' if key.ascending else 'DESC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"
            for key in self.keys
        )
        return f"Sort: {keys}" if self.top is None else f"TopK: {self.top} rows by {keys}"

    def details(self) -> Sequence[str]:
        """Every column of a key."""
        return [str(column) for column in self.columns]


@dataclass(frozen=True)
class ProjectPlan(PlanNode):
    """The columns of the result, and where each comes from."""

    names: tuple[str, ...]
    sources: tuple[str, ...]
    metric: ClassVar[str | None] = "project"

    def summary(self) -> str:
        """The step on one line."""
        return f"Project: {_listed(self.names) or 'no columns'}"

    def details(self) -> Sequence[str]:
        """Where every column comes from."""
        return self.sources


@dataclass(frozen=True)
class LatePlan(PlanNode):
    """Columns that are read only for the rows that the filter keeps."""

    columns: tuple[ColumnPlan, ...]
    metric: ClassVar[str | None] = "materialize"

    def summary(self) -> str:
        """The step on one line."""
        size = sum(column.stored_bytes for column in self.columns)
        return f"LateMaterialize: {_listed([column.name for column in self.columns])} (about {size:.3g} B a row)"

    def details(self) -> Sequence[str]:
        """Every column."""
        return [str(column) for column in self.columns]


@dataclass(frozen=True)
class FilterPlan(PlanNode):
    """Keep rows; a conjunction is computed part by part, in this order, of the columns that each part reads."""

    text: str
    steps: tuple[tuple[str, ...], ...]
    is_compiled: bool
    metric: ClassVar[str | None] = "filter"

    def summary(self) -> str:
        """The step on one line."""
        return f"Filter: {' '.join(self.text.split())}"

    def details(self) -> Sequence[str]:
        """The parts, and who computes them."""
        lines = []
        if len(self.steps) > 1:
            order = "; then ".join(", ".join(step) or "no column" for step in self.steps)
            lines.append(f"conditions in this order, each for the rows kept so far: {order}")
        if not self.is_compiled:
            lines.append("computed by pyarrow, row by row of all rows: it has parts that filter text cannot say")
        return lines


@dataclass(frozen=True)
class ScanPlan(PlanNode):
    """Read stored columns.

    Attributes
    ----------
    version
        Version of the table.
    columns
        The columns that are read for all rows looked at.
    fragments, all_fragments
        Fragments looked at, and those that there are.
    rows, all_rows
        Rows looked at, and rows of all fragments, deleted ones included in both.
    pruned
        Why fragments and rows are left out, if some are.
    is_in_order
        Whether rows come in storage order.
    window_rows, threads, batch_size
        Rows that are decoded together, threads that do, rows of a batch.
    fetched_ahead
        Windows that are fetched at the same time from other machines, 0 where the files are here.
    by_fragment
        The fragments looked at.
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
        """The step on one line."""
        size = self.rows * sum(column.stored_bytes for column in self.columns)
        said = [
            f"version={self.version}",
            f"fragments={_of(self.fragments, self.all_fragments)}",
            f"rows={_of(self.rows, self.all_rows)}",
            f"columns=[{_listed([column.name for column in self.columns])}]",
            f"bytes=about {bytes_text(size)}",
            f"batch_size={self.batch_size}",
            f"order={'kept' if self.is_in_order else 'any'}",
        ]
        return f"Scan: {', '.join([*said, *self.pruned])}"

    def details(self) -> Sequence[str]:
        """How it goes about it, every column, every fragment."""
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
    """What a whole run came to.

    Attributes
    ----------
    rows, batches, bytes
        Rows returned, in how many batches, of what size in memory; no batches where rows were only counted.
    seconds
        Time from start to end.
    reads, read_bytes
        Reads of the store, and their bytes.
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
            read += " (what this dataset has mapped or loaded before is not counted again)"
        return f"Total: {self.rows:,} rows {returned}, {seconds_text(self.seconds)}; {read}"


# -- making plans ------------------------------------------------------------------------------------------------


def scan_plan(reader: TableReader, request: ScanRequest, *, thorough: bool = True) -> PlanNode:
    """The plan of a scan, outermost step first.

    Parameters
    ----------
    reader
        The version of the table.
    request
        The scan.
    thorough
        Look at the statistics of all fragments instead of some, to say which rows they exclude.
    """
    asked, request = request, narrowed(reader, request)
    chosen = strategy(reader, request)
    late = _columns(request, chosen, chosen.late)
    if request.order_by:
        # the keys are read to find the rows, then of these what is returned
        keys = tuple(dict.fromkeys(key.column.partition(".")[0] for key in request.order_by))
        late = _columns(request, chosen, _returned(request))
        filtered = (name for step in chosen.steps for name in step.columns if name in request.schema.names)
        chosen = replace(chosen, early=tuple(dict.fromkeys((*filtered, *keys))))
        node = _found_rows(reader, asked, request, chosen, thorough)
        node = SortPlan(node, request.order_by, chosen.top, _columns(request, chosen, keys))
    else:
        node = _found_rows(reader, asked, request, chosen, thorough)
    if late:
        node = LatePlan(node, late)
    projection = request.projection
    node = ProjectPlan(node, tuple(projection.schema.names), tuple(_source(each) for each in projection.columns))
    return LimitPlan(node, request.offset, request.limit) if _is_limited(request) else node


def counting_plan(reader: TableReader, request: ScanRequest) -> PlanNode:
    """The plan of counting the rows of a scan."""
    known = request.filter is None and request.row_range is None and request.rows is None
    if known and not request.include_deleted:
        return CountPlan(LimitPlan(None, request.offset, request.limit) if _is_limited(request) else None, True)
    nothing = Projection((), request.projection.schema.empty_table().select([]).schema)
    asked = replace(request, projection=nothing, order_by=())
    request = narrowed(reader, asked)
    found = _found_rows(reader, asked, request, strategy(reader, request), True)
    return CountPlan(LimitPlan(found, request.offset, request.limit) if _is_limited(request) else found, False)


def _returned(request: ScanRequest) -> tuple[str, ...]:
    """The stored columns that the output is made of."""
    found: list[str] = []
    for output in request.projection.columns:
        if output.field is not None:
            found.append(output.field.name)
        elif output.expression is not None:
            found.extend(name for name in output.expression.columns if name in request.schema.names)
    return tuple(dict.fromkeys(found))


def _is_limited(request: ScanRequest) -> bool:
    return request.limit is not None or request.offset > 0


def _found_rows(
    reader: TableReader, asked: ScanRequest, request: ScanRequest, chosen: ScanStrategy, thorough: bool
) -> PlanNode:
    """The steps that find the rows of a scan."""
    node = _scan(reader, asked, request, chosen, thorough)
    if request.filter is None:
        return node
    steps = tuple(step.columns for step in chosen.steps)
    return FilterPlan(node, str(request.filter), steps, request.filter.tree is not None)


def _scan(
    reader: TableReader, asked: ScanRequest, request: ScanRequest, chosen: ScanStrategy, thorough: bool
) -> ScanPlan:
    fragments = list(fragments_of(reader, request))
    before = [_slice(request, fragment, start, stop) for fragment, start, stop in fragments]
    pruning = Pruning(request)
    after = [
        next(iter(pruning.prune(Window((part,))).slices), Slice(part.fragment, ()))
        if part.ranges and (thorough or number < _FEW_FRAGMENTS)
        else part
        for number, part in enumerate(before)
    ]
    looked = [part for part in after if part.ranges]
    counts = reader.manifest.fragment_list.columns.physical_rows
    return ScanPlan(
        None,
        version=reader.manifest.version,
        columns=_columns(request, chosen, chosen.early),
        fragments=len(looked),
        all_fragments=len(reader.fragments),
        rows=sum(part.width for part in looked),
        all_rows=int(counts[counts > 0].sum()),
        pruned=tuple(_reasons(reader, asked, request, before, after, thorough)),
        is_in_order=request.in_order,
        window_rows=chosen.window_rows,
        threads=chosen.threads,
        fetched_ahead=chosen.ahead if chosen.waits else 0,
        batch_size=request.batch_size,
        by_fragment=tuple(_fragment(part) for part in looked),
    )


def _slice(request: ScanRequest, fragment: FragmentReader, start: int, stop: int) -> Slice:
    if request.rows is None:
        return Slice(fragment, ((start, stop),) if start < stop else ())
    return Slice(fragment, tuple(request.rows[fragment.fragment.id].within(start, stop)))


def _reasons(
    reader: TableReader,
    asked: ScanRequest,
    request: ScanRequest,
    before: Sequence[Slice],
    after: Sequence[Slice],
    thorough: bool,
) -> Iterator[str]:
    """Why fragments or rows are left out."""
    total = len(reader.fragments)
    if asked.fragments is not None and asked.rows is None and len(asked.fragments) != total:
        yield f"{total - len(asked.fragments)} fragments left out by the caller"
    if asked.row_range is not None:
        yield f"rows {asked.row_range[0]}..{asked.row_range[1]} of each fragment"
    if request.rows is not None:
        yield "rows chosen by their addresses" if asked.rows is not None else "rows named by the filter"
    gone = sum(part.width for part in before) - sum(part.width for part in after)
    if gone:
        emptied = sum(1 for old, new in zip(before, after, strict=True) if old.ranges and not new.ranges)
        yield f"statistics exclude {gone:,} rows" + (f", of {emptied} fragments all" if emptied else "")
        if not thorough and len(before) > _FEW_FRAGMENTS:
            yield f"those of the first {_FEW_FRAGMENTS} fragments (verbose=True looks at all, as the scan does)"


def _fragment(part: Slice) -> FragmentPlan:
    fragment = part.fragment.fragment
    files = tuple(f"{file.path} ({file.storage_version})" for file in fragment.files)
    deleted = 0
    if fragment.deletion_file is not None:
        deleted = fragment.deletion_file.num_deleted_rows or -1
    return FragmentPlan(fragment.id, files, part.fragment.physical_rows, deleted, part.ranges)


def _columns(request: ScanRequest, chosen: ScanStrategy, names: Sequence[str]) -> tuple[ColumnPlan, ...]:
    """Stored columns as they are read: those of the output that are prunings of the stored ones as such."""
    found = []
    pruned = {output.field.name: output.field for output in request.projection.columns if output.field is not None}
    for name in names:
        field = pruned.get(name, request.schema.top_level(name))
        found.append(ColumnPlan(name, str(field.to_arrow().type), chosen.costs.cost(field).stored))
    return tuple(found)


def _source(output: OutputColumn) -> str:
    name, kind = output.arrow.name, output.arrow.type
    if output.expression is not None:
        return f"{name}: {kind} = {output.expression}"
    if output.system is not None:
        return f"{name}: {kind}, made of where the row is" if output.system in _OF_PLACE else f"{name}: {kind}, lineage"
    stored = name if output.field is None else ".".join((output.field.name, *output.path))
    return f"{name}: {kind}" if stored == name else f"{name}: {kind} = {stored}"


_OF_PLACE = frozenset(("_rowaddr", "_rowoffset"))


# -- text --------------------------------------------------------------------------------------------------------


def rendered(
    root: PlanNode, *, verbose: bool = False, metrics: ScanMetrics | None = None, totals: RunTotals | None = None
) -> str:
    """A plan as text: one step per line, each below the one it gives its rows to.

    Parameters
    ----------
    root
        The outermost step.
    verbose
        Show the details of every step on lines of their own.
    metrics
        What the steps of a run counted, to be shown beside them.
    totals
        What the run came to, to be shown at the end.
    """
    lines: list[str] = []
    node: PlanNode | None = root
    depth = 0
    counters = {} if metrics is None else _counters(root, metrics)
    while node is not None:
        indent = "   " * (depth - 1) + "└─ " if depth else ""
        counted = None if node.metric is None else counters.get(node.metric)
        lines.append(indent + node.summary() + ("" if counted is None else f"  [{counted}]"))
        if verbose:
            bar = "   " * depth + ("│  " if node.child is not None else "   ")
            lines.extend(f"{bar}{line}" for line in node.details())
        node, depth = node.child, depth + 1
    if totals is not None:
        lines.append(str(totals))
    return "\n".join(lines)


def _counters(root: PlanNode, metrics: ScanMetrics) -> dict[str, str]:
    """What the steps that are shown did, by the names of their counters."""
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
    """The counters of a scan that reads what it returns, which is counted as a step of its own."""
    both = NodeMetrics()
    both.add(
        scan.rows,
        batches=scan.batches,
        bytes=scan.bytes + rest.bytes,
        seconds=scan.seconds + rest.seconds,
        **scan.counts,
    )
    return both


def counters_text(node: NodeMetrics) -> str:
    """What a step did, in a few words."""
    parts = [f"rows={node.rows:,}"]
    if node.batches:
        parts.append(f"batches={node.batches:,}")
    if node.bytes:
        parts.append(f"bytes={bytes_text(node.bytes)}")
    if node.seconds:
        parts.append(f"time={seconds_text(node.seconds)}")
    parts.extend(f"{name}={number:,}" for name, number in node.counts.items())
    return ", ".join(parts)


def bytes_text(size: float) -> str:
    """A number of bytes with a unit that suits it."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"


def seconds_text(seconds: float) -> str:
    """A time with a unit that suits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _of(part: int, whole: int) -> str:
    return f"{whole:,}" if part == whole else f"{part:,} of {whole:,}"
