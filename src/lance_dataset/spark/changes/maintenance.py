"""Maintenance by tasks of Spark: the driver plans, tasks rewrite fragments or build segments, one commit follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lance_dataset.errors import InvalidInputError
from lance_dataset.optimize import Compaction, CompactionTask
from lance_dataset.spark.jobs.shares import cores, grouped
from lance_dataset.spark.jobs.tasks import Work, run_tasks
from lance_dataset.spark.option_parsing import storage_options_text
from lance_dataset.spark.snapshot import Snapshot, pin

__all__ = ["compact", "create_index", "create_indices"]


def compact(
    spark: Any, uri: str, *, storage_options: Mapping[str, str] | None = None, **options: Any
) -> dict[str, int]:
    """Rewrite small fragments and deleted rows in tasks, with one commit.

    Parameters
    ----------
    spark
        Spark session.
    uri
        Path or URI of the dataset.
    storage_options
        Settings of the object store.
    **options
        Those of ``LanceDataset.optimize.compact_files``, such as ``target_rows_per_fragment``.

    Returns
    -------
    dict
        Numbers of fragments and files that were removed and added.

    Raises
    ------
    CommitConflictError
        Other writers changed the same fragments meanwhile. The rewritten files are removed.
    TaskError
        A task failed; the message names its fragments. Nothing is committed.
    """
    snapshot, dataset = pin(uri, None, storage_options_text(storage_options))
    plan = Compaction.plan(dataset, options)  # type: ignore[arg-type]
    rewrites = run_tasks(spark, _Rewrites([task.json() for task in plan.tasks], snapshot))
    try:
        return asdict(Compaction.commit(dataset, rewrites, options))  # type: ignore[arg-type]
    except BaseException:
        Compaction.discard(dataset, rewrites)
        raise


class _Rewrites(Work):
    """Compaction of a group of fragments in each task."""

    def __init__(self, pieces: Sequence[str], snapshot: Snapshot) -> None:
        super().__init__(pieces)
        self.snapshot = snapshot

    def describe(self, piece: str) -> str:
        ids = ", ".join(str(fragment.id) for fragment in CompactionTask.from_json(piece).fragments)
        return f"fragments {ids} of version {self.snapshot.version} of {self.snapshot.uri}"

    def run(self, piece: str) -> Any:
        return CompactionTask.from_json(piece).execute(self.snapshot.open())


def create_index(
    spark: Any,
    uri: str,
    column: str,
    index_type: str,
    name: str | None = None,
    *,
    replace: bool = False,
    segments: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    **parameters: Any,
) -> str:
    """Build an index in tasks, a segment of some fragments each, and publish all of them in one commit.

    Parameters
    ----------
    spark
        Spark session.
    uri
        Path or URI of the dataset.
    column
        Column to index.
    index_type
        Kind of the index, such as ``"BTREE"``, ``"INVERTED"`` or ``"IVF_PQ"``.
    name
        Name of the index; that of the column and ``_idx`` by default.
    replace
        True to replace an index of the same name.
    segments
        Number of segments; by default one for each core of the session, and no more than fragments. Searches look into
        each segment, so a few large ones are better than many small ones.
    storage_options
        Settings of the object store.
    **parameters
        Those of ``LanceDataset.create_index`` and ``create_scalar_index``.

    Returns
    -------
    str
        Name of the index.

    Raises
    ------
    InvalidInputError
        The name is taken, or the dataset has no rows.
    TaskError
        A task failed, for example because the index does not fit the column. Nothing is published.
    """
    name = name or f"{column}_idx"
    wanted = {name: {"column": column, "index_type": index_type, **parameters}}
    create_indices(spark, uri, wanted, replace=replace, segments=segments, storage_options=storage_options)
    return name


def create_indices(
    spark: Any,
    uri: str,
    indices: Mapping[str, Mapping[str, Any]],
    *,
    replace: bool = False,
    segments: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Build several indices as one job, and publish all of them in one commit.

    Parameters
    ----------
    spark
        Spark session.
    uri
        Path or URI of the dataset.
    indices
        By the name of each index: its ``column``, ``index_type``, and parameters as for `create_index`.
    replace
        True to replace indices of the same names.
    segments
        Number of segments of each index, as for `create_index`.
    storage_options
        Settings of the object store.

    Returns
    -------
    int
        The new version.

    Raises
    ------
    InvalidInputError
        A name is taken, an index lacks its column or type or has a parameter ``name`` or ``replace``, `indices` is
        empty, or the dataset has no rows.
    TaskError
        A task failed, for example because an index does not fit its column. Nothing is published.
    """
    snapshot, dataset = pin(uri, None, storage_options_text(storage_options))
    taken = {index.name for index in dataset.describe_indices()}
    for name, parameters in indices.items():
        missing = {"column", "index_type"} - set(parameters)
        if missing:
            raise InvalidInputError(f"The index {name!r} needs {' and '.join(sorted(missing))}")
        if not {"name", "replace"}.isdisjoint(parameters):
            raise InvalidInputError(f"The index {name!r} has its name as the key, and replace is the same for all")
        if name in taken and not replace:
            raise InvalidInputError(f"The dataset has an index {name!r} already; replace it with replace=True")
    fragments = dataset.fragment_ids()
    if not fragments or not indices:
        raise InvalidInputError(f"The dataset {uri} has no rows to index" if indices else "There are no indices")
    groups = grouped(fragments, max(1, segments or cores(spark)))
    pieces = [
        _Segment({"name": name, "replace": replace, **parameters}, group)
        for name, parameters in indices.items()
        for group in groups
    ]
    built: dict[str, list[Any]] = {}
    for piece, segment in zip(pieces, run_tasks(spark, _Segments(pieces, snapshot)), strict=True):
        built.setdefault(piece.arguments["name"], []).append(segment)
    return int(dataset.commit_index_segments_together(built).version)


@dataclass(frozen=True)
class _Segment:
    """A segment to build: arguments of the index, and its fragments."""

    arguments: Mapping[str, Any]
    fragments: list[int]


class _Segments(Work):
    """A segment of an index in each task."""

    def __init__(self, pieces: Sequence[_Segment], snapshot: Snapshot) -> None:
        super().__init__(pieces)
        self.snapshot = snapshot

    def describe(self, piece: _Segment) -> str:
        column, kind, numbers = piece.arguments["column"], piece.arguments["index_type"], piece.fragments
        return (
            f"the {kind} index of column {column!r} for fragments {numbers[0]} to {numbers[-1]} of {self.snapshot.uri}"
        )

    def run(self, piece: _Segment) -> Any:
        return self.snapshot.open().create_index_uncommitted(fragment_ids=piece.fragments, **piece.arguments)
