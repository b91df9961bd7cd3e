"""Compaction in three steps: plan, execute tasks in workers, commit their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from lance_dataset.api.scanner.progress import ProgressOption, reported_progress
from lance_dataset.errors import InvalidInputError
from lance_dataset.file.goals import StorageGoal
from lance_dataset.late_dataclass import dataclass
from lance_dataset.read.shown import Shown
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.fragment import FragmentMetadata
from lance_dataset.table.fragment import Fragment

if TYPE_CHECKING:
    from lance_dataset.changes.compaction.planning import Plan
    from lance_dataset.changes.compaction.rewriting import Rewritten
    from lance_dataset.changes.compaction.settings import CompactionSettings

__all__ = [
    "Compaction",
    "CompactionMetrics",
    "CompactionMode",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "RewriteResult",
]


CompactionMode: TypeAlias = Literal["reencode", "try_binary_copy", "force_binary_copy"]


class CompactionOptions(TypedDict, total=False):
    """Options of a compaction. `DatasetOptimizer.compact_files` describes them."""

    target_rows_per_fragment: int | None
    max_rows_per_group: int | None
    max_bytes_per_file: int | None
    materialize_deletions: bool | None
    materialize_deletions_threshold: float | None
    num_threads: int | None
    batch_size: int | None
    io_buffer_size: int | None
    compaction_mode: CompactionMode | None
    binary_copy_read_batch_bytes: int | None
    defer_index_remap: bool | None
    max_source_fragments: int | None
    max_source_rows: int | None
    max_source_bytes: int | None
    excluded_fragment_ids: Sequence[int] | None
    data_storage_version: str | None
    optimize: StorageGoal | None


@dataclass
class CompactionMetrics:
    """Counts of the fragments and files that a compaction removed and added.

    Attributes
    ----------
    fragments_removed, fragments_added
        Number of fragments.
    files_removed, files_added
        Number of data and deletion files that the new version no longer uses, and of new files.
    """

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0

    @classmethod
    def of(cls, rewritten: Sequence[Rewritten]) -> CompactionMetrics:
        """Count the fragments and files in the results of tasks."""
        old = [fragment for each in rewritten for fragment in each.group.old_fragments]
        new = [fragment for each in rewritten for fragment in each.group.new_fragments]
        deletions = sum(fragment.deletion_file is not None for fragment in old)
        return cls(
            fragments_removed=len(old),
            fragments_added=len(new),
            files_removed=sum(len(fragment.files) for fragment in old) + deletions,
            files_added=sum(len(fragment.files) for fragment in new),
        )


class CompactionPlan:
    """Plan of a compaction: tasks that other processes may execute. A plan can be pickled.

    Attributes
    ----------
    read_version
        Version that the plan was made for.
    tasks
        One task for each run of fragments to rewrite together.
    """

    def __init__(self, read_version: int, tasks: Iterable[CompactionTask], options: CompactionSettings) -> None:
        self.read_version = read_version
        self.tasks = list(tasks)
        self._options = options

    def __repr__(self) -> str:
        return f"CompactionPlan(read_version={self.read_version}, tasks=<{len(self.tasks)} compaction tasks>)"

    def num_tasks(self) -> int:
        """Number of tasks."""
        return len(self.tasks)

    def json(self) -> str:
        """Return the JSON form."""
        from lance_dataset.changes.compaction.json_forms import compact_json, fragments_json

        tasks = [{"fragments": fragments_json(task._old)} for task in self.tasks]
        options = self._options.to_json()
        return compact_json({"tasks": tasks, "read_version": self.read_version, "options": options})

    @staticmethod
    def from_json(json: str) -> CompactionPlan:
        """Read the JSON form, written by this package or by the reference.

        Raises
        ------
        InvalidInputError
            The text is not a plan.
        """
        from lance_dataset.changes.compaction.json_forms import fragments_of, list_of, loaded, version_of
        from lance_dataset.changes.compaction.settings import CompactionSettings

        value = loaded(json, "CompactionPlan", "tasks", "read_version", "options")
        version = version_of(value, "CompactionPlan")
        options = CompactionSettings.from_json(value["options"], "CompactionPlan")
        tasks = [
            CompactionTask(version, fragments_of(each, "fragments", "CompactionPlan"), options)
            for each in list_of(value["tasks"], "tasks", "CompactionPlan")
        ]
        return CompactionPlan(version, tasks, options)

    def __reduce__(self) -> tuple[Any, ...]:
        return CompactionPlan.from_json, (self.json(),)


class CompactionTask:
    """Fragments to rewrite together. A task can be pickled.

    Attributes
    ----------
    read_version
        Version that the fragments belong to.
    """

    def __init__(self, read_version: int, fragments: Sequence[Fragment], options: CompactionSettings) -> None:
        self.read_version = read_version
        self._old = tuple(fragments)
        self._options = options

    def __repr__(self) -> str:
        return f"CompactionTask(read_version={self.read_version}, fragments={self.fragments!r})"

    @property
    def fragments(self) -> list[FragmentMetadata]:
        """Metadata of the fragments to rewrite."""
        return [FragmentMetadata.from_fragment(fragment) for fragment in self._old]

    def execute(self, dataset: Shown) -> RewriteResult:
        """Write the new fragments. Nothing refers to them until the result is committed.

        If writing fails, the new files are removed.

        Parameters
        ----------
        dataset
            The dataset at any version. The rows are always read from `read_version`.

        Returns
        -------
        RewriteResult
            Input for `Compaction.commit`.

        Raises
        ------
        InvalidInputError
            The fragments do not belong to `read_version` of the dataset.
        VersionNotFoundError
            The version does not exist any more.
        UnsupportedError
            The file version cannot hold the data, or the task must copy pages and they cannot be copied.
        """
        from lance_dataset.changes.compaction.planning import Task
        from lance_dataset.changes.compaction.rewriting import rewrite_task

        snapshot = dataset.snapshot.at(self.read_version)
        readers, positions = [], []
        for fragment in self._old:
            reader = snapshot.reader.fragment(fragment.id)
            position = snapshot.manifest.fragment_list.position(fragment.id)
            if reader is None or position is None or not _is_same(reader.fragment, fragment):
                raise InvalidInputError(
                    f"fragment {fragment.id} of the task is not that of version {self.read_version} of "
                    f"{snapshot.uri}; the task is of another dataset"
                )
            readers.append(reader)
            positions.append(position)
        task = Task(tuple(positions), tuple(readers))
        version = self._options.data_storage_version or snapshot.manifest.storage_version
        return RewriteResult(rewrite_task(snapshot, task, version, self._options))

    def json(self) -> str:
        """Return the JSON form."""
        from lance_dataset.changes.compaction.json_forms import compact_json, fragments_json

        options = self._options.to_json()
        value = {"fragments": fragments_json(self._old)}
        return compact_json({"task": value, "read_version": self.read_version, "options": options})

    @staticmethod
    def from_json(json: str) -> CompactionTask:
        """Read the JSON form, written by this package or by the reference.

        Raises
        ------
        InvalidInputError
            The text is not a task.
        """
        from lance_dataset.changes.compaction.json_forms import fragments_of, loaded, version_of
        from lance_dataset.changes.compaction.settings import CompactionSettings

        value = loaded(json, "CompactionTask", "task", "read_version", "options")
        options = CompactionSettings.from_json(value["options"], "CompactionTask")
        fragments = fragments_of(value["task"], "fragments", "CompactionTask")
        return CompactionTask(version_of(value, "CompactionTask"), fragments, options)

    def __reduce__(self) -> tuple[Any, ...]:
        return CompactionTask.from_json, (self.json(),)


class RewriteResult:
    """Result of a task. It can be pickled."""

    def __init__(self, rewritten: Rewritten) -> None:
        self._rewritten = rewritten

    def __repr__(self) -> str:
        return (
            f"RewriteResult(read_version={self.read_version}, new_fragments={self.new_fragments!r}, "
            f"old_fragments={self.original_fragments!r})"
        )

    @property
    def read_version(self) -> int:
        """Version that the old fragments belong to."""
        return self._rewritten.read_version

    @property
    def metrics(self) -> CompactionMetrics:
        """Counts of the fragments and files that committing the result removes and adds."""
        return CompactionMetrics.of([self._rewritten])

    @property
    def original_fragments(self) -> list[FragmentMetadata]:
        """Metadata of the fragments that were rewritten."""
        return [FragmentMetadata.from_fragment(each) for each in self._rewritten.group.old_fragments]

    @property
    def new_fragments(self) -> list[FragmentMetadata]:
        """Metadata of the fragments that replace them. They get their ids at commit."""
        return [FragmentMetadata.from_fragment(each) for each in self._rewritten.group.new_fragments]

    def json(self) -> str:
        """Return the JSON form."""
        from lance_dataset.changes.compaction.json_forms import compact_json, fragments_json

        surviving = self._rewritten.surviving
        return compact_json(
            {
                "metrics": asdict(self.metrics),
                "new_fragments": fragments_json(self._rewritten.group.new_fragments),
                "read_version": self.read_version,
                "original_fragments": fragments_json(self._rewritten.group.old_fragments),
                "row_addrs": None if surviving is None else list(surviving),
            }
        )

    @staticmethod
    def from_json(json: str) -> RewriteResult:
        """Read the JSON form, written by this package or by the reference.

        Raises
        ------
        InvalidInputError
            The text is not a result.
        """
        from lance_dataset.changes.compaction.json_forms import fragments_of, list_of, loaded, not_loaded, version_of
        from lance_dataset.changes.compaction.rewriting import Rewritten
        from lance_dataset.table.operations import RewriteGroup

        value = loaded(json, "RewriteResult", "metrics", "new_fragments", "read_version", "original_fragments")
        old, new = (fragments_of(value, name, "RewriteResult") for name in ("original_fragments", "new_fragments"))
        surviving = value.get("row_addrs")
        try:
            surviving = None if surviving is None else bytes(list_of(surviving, "row_addrs", "RewriteResult"))
        except (TypeError, ValueError) as error:
            raise not_loaded("RewriteResult", "'row_addrs' is not a list of bytes") from error
        return RewriteResult(Rewritten(version_of(value, "RewriteResult"), RewriteGroup(old, new), surviving))

    def __reduce__(self) -> tuple[Any, ...]:
        return RewriteResult.from_json, (self.json(),)


class Compaction:
    """Compaction in three steps, so that workers in other processes can write the new files.

    Examples
    --------
    >>> plan = Compaction.plan(dataset, {"target_rows_per_fragment": 1_000_000})  # doctest: +SKIP
    >>> results = [task.execute(dataset) for task in plan.tasks]  # doctest: +SKIP
    >>> Compaction.commit(dataset, results)  # doctest: +SKIP
    """

    @staticmethod
    def plan(dataset: Shown, options: CompactionOptions) -> CompactionPlan:
        """Choose the fragments to compact.

        Parameters
        ----------
        dataset
            The dataset at the version to compact.
        options
            See `DatasetOptimizer.compact_files`.

        Raises
        ------
        InvalidInputError, TypeError
            An option is unknown or out of range.
        UnsupportedError
            The dataset cannot be compacted with these options.
        """
        from lance_dataset.changes.compaction.running import planned

        snapshot, settings = dataset.snapshot, _settings(dataset.snapshot, options)
        return _public_plan(snapshot, planned(snapshot, settings), settings)

    @staticmethod
    def execute(dataset: Shown, options: CompactionOptions, *, progress: ProgressOption = None) -> CompactionMetrics:
        """Plan, execute and commit, like `DatasetOptimizer.compact_files`."""
        from lance_dataset.changes.compaction.running import compact

        settings = _settings(dataset.snapshot, options)
        with reported_progress(progress, lambda: None, "compaction") as told:
            made, rewritten = compact(dataset.snapshot, settings, told)
            dataset.show(made)
        return CompactionMetrics.of(rewritten)

    @staticmethod
    def commit(
        dataset: Shown, rewrites: Sequence[RewriteResult], options: CompactionOptions | None = None
    ) -> CompactionMetrics:
        """Replace the old fragments by the new ones in one commit and move the handle to the new version.

        Parameters
        ----------
        dataset
            The dataset, at any version since the plan was made.
        rewrites
            Results of all tasks of a plan, or of some of them. The others can be committed later.
        options
            Only `defer_index_remap` is used.

        Returns
        -------
        CompactionMetrics
            All counts are zero if `rewrites` is empty. Nothing is committed then.

        Raises
        ------
        CommitConflictError
            Another writer changed the old fragments, or the result was committed before. The new files stay, since
            another process may know of them; `cleanup_old_versions` removes files that no version needs.
        UnsupportedError
            An index that this release does not know covers the old fragments, and `defer_index_remap` is not set.
        InvalidInputError
            The results do not fit together, they belong to another dataset, or a new file does not match its result.
        MissingFileError, CorruptFileError
            A new file does not exist any more, or is damaged.
        """
        from lance_dataset.changes.compaction.committing import commit_rewritten

        settings = _settings(dataset.snapshot, options or {})
        results = list(rewrites)
        for each in results:
            if not isinstance(each, RewriteResult):
                raise TypeError(f"rewrites must be RewriteResults, not {type(each).__name__}")
        rewritten = [each._rewritten for each in results]
        if not rewritten:
            return CompactionMetrics()
        made = commit_rewritten(dataset.snapshot, rewritten, deferred=settings.defer_index_remap, open_files=True)
        dataset.show(made)
        return CompactionMetrics.of(rewritten)

    @staticmethod
    def discard(dataset: Shown, rewrites: Sequence[RewriteResult]) -> None:
        """Remove the new files of results that nobody is going to commit, for example after a conflict.

        Files that a version uses, or may use, stay. Failures only leave files behind, which a cleanup removes later.

        Parameters
        ----------
        dataset
            The dataset, at any version.
        rewrites
            Results of tasks.
        """
        from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of

        for each in rewrites:
            written = data_files_of(each._rewritten.group.new_fragments)
            files = ChangeFiles(dataset.snapshot.store, dataset.snapshot.root, written)
            files.remove_unless_committed(each.read_version)


def _settings(snapshot: Snapshot, options: object) -> CompactionSettings:
    from lance_dataset.changes.compaction.settings import CompactionSettings

    if not isinstance(options, Mapping):
        raise TypeError(f"compaction options must be a dict, not {type(options).__name__}")
    return CompactionSettings.of(options, snapshot.manifest.config)


def _public_plan(snapshot: Snapshot, plan: Plan, settings: CompactionSettings) -> CompactionPlan:
    from lance_dataset.index.remap import indices_to_remap

    stable = snapshot.manifest.uses_stable_row_ids
    follows = bool(indices_to_remap(snapshot.manifest)) if stable else None
    settings = replace(settings, data_storage_version=plan.version, has_eager_remappable_index=follows)
    tasks = [
        CompactionTask(snapshot.version, [reader.fragment for reader in task.fragments], settings)
        for task in plan.tasks
    ]
    return CompactionPlan(snapshot.version, tasks, settings)


def _is_same(known: Fragment, given: Fragment) -> bool:
    return known.files == given.files and known.deletion_file == given.deletion_file
