"""Compaction in three steps: a plan, tasks that workers execute, and the commit of their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from lance_dataset.changes.compaction.committing import commit_rewritten
from lance_dataset.changes.compaction.json_forms import (
    compact_json,
    fragments_json,
    fragments_of,
    list_of,
    loaded,
    not_loaded,
    version_of,
)
from lance_dataset.changes.compaction.planning import Plan, Task
from lance_dataset.changes.compaction.rewriting import Rewritten, rewrite_task
from lance_dataset.changes.compaction.running import compact, planned
from lance_dataset.changes.compaction.settings import CompactionSettings
from lance_dataset.errors import InvalidInputError
from lance_dataset.fragment_metadata import FragmentMetadata
from lance_dataset.index.remap import indices_to_remap
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.operations import RewriteGroup

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = [
    "Compaction",
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "RewriteResult",
]


class CompactionOptions(TypedDict, total=False):
    """Options of a compaction; see `DatasetOptimizer.compact_files` for what they mean."""

    target_rows_per_fragment: int | None
    max_rows_per_group: int | None
    max_bytes_per_file: int | None
    materialize_deletions: bool | None
    materialize_deletions_threshold: float | None
    num_threads: int | None
    batch_size: int | None
    io_buffer_size: int | None
    compaction_mode: Literal["reencode", "try_binary_copy", "force_binary_copy"] | None
    binary_copy_read_batch_bytes: int | None
    defer_index_remap: bool | None
    max_source_fragments: int | None
    max_source_rows: int | None
    max_source_bytes: int | None
    excluded_fragment_ids: list[int] | None
    data_storage_version: str | None


@dataclass
class CompactionMetrics:
    """What a compaction changed.

    Attributes
    ----------
    fragments_removed, fragments_added
        Fragments.
    files_removed, files_added
        Data files and deletion files that the new version does not need any more, and new ones.
    """

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0

    @classmethod
    def _of(cls, rewritten: Sequence[Rewritten]) -> CompactionMetrics:
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
    """What is to be compacted: tasks, which may be executed by other processes. It can be pickled.

    Attributes
    ----------
    read_version
        The version it was made for.
    tasks
        One for each run of fragments that are written anew together.
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
        """The JSON form."""
        tasks = [{"fragments": fragments_json(task._old)} for task in self.tasks]
        options = self._options.to_json()
        return compact_json({"tasks": tasks, "read_version": self.read_version, "options": options})

    @staticmethod
    def from_json(json: str) -> CompactionPlan:
        """Read the JSON form, of this package or the reference.

        Raises
        ------
        InvalidInputError
            The text is no plan.
        """
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
    """Fragments that are written anew together. It can be pickled.

    Attributes
    ----------
    read_version
        The version of the fragments.
    """

    def __init__(self, read_version: int, fragments: Sequence[Fragment], options: CompactionSettings) -> None:
        self.read_version = read_version
        self._old = tuple(fragments)
        self._options = options

    def __repr__(self) -> str:
        return f"CompactionTask(read_version={self.read_version}, fragments={self.fragments!r})"

    @property
    def fragments(self) -> list[FragmentMetadata]:
        """The fragments."""
        return [FragmentMetadata.from_fragment(fragment) for fragment in self._old]

    def execute(self, dataset: LanceDataset) -> RewriteResult:
        """Write the new fragments. Nothing refers to them before the result is committed.

        Parameters
        ----------
        dataset
            The dataset; whatever version it shows, the rows are those of `read_version`.

        Returns
        -------
        RewriteResult
            What `Compaction.commit` needs to know. If anything fails, the files are removed again.

        Raises
        ------
        InvalidInputError
            The fragments are not those of the version.
        VersionNotFoundError
            The version is not there any more.
        UnsupportedError
            The file version cannot hold the data; or pages cannot be copied and must be.
        """
        handle = dataset if dataset.version == self.read_version else dataset._at(dataset._load(self.read_version))
        readers, positions = [], []
        for fragment in self._old:
            reader = handle._reader.fragment(fragment.id)
            position = handle._manifest.fragment_list.position(fragment.id)
            if reader is None or position is None or not _is_same(reader.fragment, fragment):
                raise InvalidInputError(
                    f"fragment {fragment.id} of the task is not that of version {self.read_version} of "
                    f"{dataset.uri}; the task is of another dataset"
                )
            readers.append(reader)
            positions.append(position)
        task = Task(tuple(positions), tuple(readers))
        version = self._options.data_storage_version or handle._manifest.storage_version
        return RewriteResult(rewrite_task(handle, task, version, self._options))

    def json(self) -> str:
        """The JSON form."""
        options = self._options.to_json()
        value = {"fragments": fragments_json(self._old)}
        return compact_json({"task": value, "read_version": self.read_version, "options": options})

    @staticmethod
    def from_json(json: str) -> CompactionTask:
        """Read the JSON form, of this package or the reference.

        Raises
        ------
        InvalidInputError
            The text is no task.
        """
        value = loaded(json, "CompactionTask", "task", "read_version", "options")
        options = CompactionSettings.from_json(value["options"], "CompactionTask")
        fragments = fragments_of(value["task"], "fragments", "CompactionTask")
        return CompactionTask(version_of(value, "CompactionTask"), fragments, options)

    def __reduce__(self) -> tuple[Any, ...]:
        return CompactionTask.from_json, (self.json(),)


class RewriteResult:
    """What a task wrote. It can be pickled."""

    def __init__(self, rewritten: Rewritten) -> None:
        self._rewritten = rewritten

    def __repr__(self) -> str:
        return (
            f"RewriteResult(read_version={self.read_version}, new_fragments={self.new_fragments!r}, "
            f"old_fragments={self.original_fragments!r})"
        )

    @property
    def read_version(self) -> int:
        """The version of the old fragments."""
        return self._rewritten.read_version

    @property
    def metrics(self) -> CompactionMetrics:
        """What changes when it is committed."""
        return CompactionMetrics._of([self._rewritten])

    @property
    def original_fragments(self) -> list[FragmentMetadata]:
        """The fragments that go."""
        return [FragmentMetadata.from_fragment(each) for each in self._rewritten.group.old_fragments]

    @property
    def new_fragments(self) -> list[FragmentMetadata]:
        """The fragments that take their place; they get their ids at commit."""
        return [FragmentMetadata.from_fragment(each) for each in self._rewritten.group.new_fragments]

    def json(self) -> str:
        """The JSON form."""
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
        """Read the JSON form, of this package or the reference.

        Raises
        ------
        InvalidInputError
            The text is no result.
        """
        value = loaded(json, "RewriteResult", "metrics", "new_fragments", "read_version", "original_fragments")
        old, new = (fragments_of(value, name, "RewriteResult") for name in ("original_fragments", "new_fragments"))
        surviving = value.get("row_addrs")
        try:
            surviving = None if surviving is None else bytes(list_of(surviving, "row_addrs", "RewriteResult"))
        except (TypeError, ValueError) as error:
            raise not_loaded("RewriteResult", "'row_addrs' is no list of bytes") from error
        return RewriteResult(Rewritten(version_of(value, "RewriteResult"), RewriteGroup(old, new), surviving))

    def __reduce__(self) -> tuple[Any, ...]:
        return RewriteResult.from_json, (self.json(),)


class Compaction:
    """Compaction in three steps, so that workers in other processes do the writing.

    Examples
    --------
    >>> plan = Compaction.plan(dataset, {"target_rows_per_fragment": 1_000_000})  # doctest: +SKIP
    >>> results = [task.execute(dataset) for task in plan.tasks]  # doctest: +SKIP
    >>> Compaction.commit(dataset, results)  # doctest: +SKIP
    """

    @staticmethod
    def plan(dataset: LanceDataset, options: CompactionOptions) -> CompactionPlan:
        """Choose what to compact.

        Parameters
        ----------
        dataset
            The version.
        options
            See `DatasetOptimizer.compact_files`.

        Raises
        ------
        InvalidInputError, TypeError
            An option is unknown or out of range.
        UnsupportedError
            The dataset cannot be compacted like that.
        """
        settings = _settings(dataset, options)
        return _public_plan(dataset, planned(dataset, settings), settings)

    @staticmethod
    def execute(dataset: LanceDataset, options: CompactionOptions) -> CompactionMetrics:
        """Plan, execute and commit; the same as `DatasetOptimizer.compact_files`."""
        return CompactionMetrics._of(compact(dataset, _settings(dataset, options)))

    @staticmethod
    def commit(
        dataset: LanceDataset, rewrites: Sequence[RewriteResult], options: CompactionOptions | None = None
    ) -> CompactionMetrics:
        """Put what tasks wrote in the place of the old fragments, in one commit; the dataset moves to the new version.

        Parameters
        ----------
        dataset
            The dataset, at any version since the plan was made.
        rewrites
            Results of all tasks of a plan, or of some of them: the others can be committed later.
        options
            Of these, `defer_index_remap` counts.

        Returns
        -------
        CompactionMetrics
            All zero, and no commit, without results.

        Raises
        ------
        CommitConflictError
            Others changed the old fragments meanwhile, or the result was committed before. The new files stay: another
            process may know of them, and `cleanup_old_versions` removes what no version needs.
        UnsupportedError
            An index that this release does not know covers the old fragments, and `defer_index_remap` is not set.
        InvalidInputError
            The results do not go together, or are of another dataset; or a new file is not as its result says.
        MissingFileError, CorruptFileError
            A new file is not there any more, or is damaged.
        """
        settings = _settings(dataset, options or {})
        results = list(rewrites)
        for each in results:
            if not isinstance(each, RewriteResult):
                raise TypeError(f"rewrites must be RewriteResults, not {type(each).__name__}")
        rewritten = [each._rewritten for each in results]
        if not rewritten:
            return CompactionMetrics()
        made = commit_rewritten(dataset, rewritten, deferred=settings.defer_index_remap, open_files=True)
        dataset._show(made)
        return CompactionMetrics._of(rewritten)


def _settings(dataset: LanceDataset, options: object) -> CompactionSettings:
    if not isinstance(options, Mapping):
        raise TypeError(f"compaction options must be a dict, not {type(options).__name__}")
    return CompactionSettings.of(options, dataset.config())


def _public_plan(dataset: LanceDataset, plan: Plan, settings: CompactionSettings) -> CompactionPlan:
    stable = dataset._manifest.uses_stable_row_ids
    follows = bool(indices_to_remap(dataset._manifest)) if stable else None
    settings = replace(settings, data_storage_version=plan.version, has_eager_remappable_index=follows)
    tasks = [
        CompactionTask(dataset.version, [reader.fragment for reader in task.fragments], settings) for task in plan.tasks
    ]
    return CompactionPlan(dataset.version, tasks, settings)


def _is_same(known: Fragment, given: Fragment) -> bool:
    return known.files == given.files and known.deletion_file == given.deletion_file
