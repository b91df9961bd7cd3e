"""Looking after the files of a dataset: which there are, which are needed, and removing the others."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import ObjectStore
from lance_dataset.session import Session
from lance_dataset.statistics import LanceStats
from lance_dataset.table.cleanup.file_usage import read_usage
from lance_dataset.table.cleanup.plan import plan_cleanup
from lance_dataset.table.cleanup.removal import CleanupPolicy, Removed, cleanup, planned_removal
from lance_dataset.table.cleanup.tracked_files import TrackedFiles
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.versions import list_versions
from lance_dataset.validation import validate_dataset

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = [
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupReferencedBranch",
    "CleanupStats",
    "Maintained",
]

_DEFAULT_AGE = dt.timedelta(days=14)
_BATCH_ROWS = 8192
#: Switches with what None stands for.
_SWITCHES = {"delete_unverified": False, "error_if_tagged_old_versions": True}
_LIMITS = ("delete_rate_limit", "delete_concurrency")
_ALL_FILES = pa.schema(
    [
        pa.field("base_uri", pa.dictionary(pa.int32(), pa.utf8()), nullable=False),
        pa.field("path", pa.utf8(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
_TRACKED_FILES = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("base_uri", pa.dictionary(pa.int32(), pa.utf8()), nullable=False),
        pa.field("path", pa.utf8(), nullable=False),
        pa.field("type", pa.dictionary(pa.int8(), pa.utf8()), nullable=False),
    ]
)
Progress: TypeAlias = "Callable[[int, int | None], object]"


@dataclass(frozen=True)
class CleanupStats:
    """What a cleanup removed, or would remove.

    Attributes
    ----------
    bytes_removed
        Size of all files, manifests included.
    old_versions
        Number of versions.
    data_files_removed, transaction_files_removed, index_files_removed, deletion_files_removed
        Number of files by kind; blob files are data files.
    failed_deletes
        Number of files that could not be removed.
    """

    bytes_removed: int
    old_versions: int
    data_files_removed: int
    transaction_files_removed: int
    index_files_removed: int
    deletion_files_removed: int
    failed_deletes: int


@dataclass(frozen=True)
class CleanupCandidateFile:
    """A file that a cleanup would remove.

    Attributes
    ----------
    path
        Path in the store, without a slash in front.
    kind
        ``manifest``, ``data``, ``deletion``, ``transaction``, ``index`` or ``temporary_manifest``.
    unverified
        Whether no version ever referred to it, as far as is known.
    size_bytes
        Its size.
    """

    path: str
    kind: str
    unverified: bool
    size_bytes: int


@dataclass(frozen=True)
class CleanupReferencedBranch:
    """A branch that uses files of the dataset.

    Attributes
    ----------
    name
        Its name.
    referenced_version
        Version of the dataset it began from.
    cleanup_candidate
        Whether it would be cleaned up too; it never is.
    """

    name: str
    referenced_version: int
    cleanup_candidate: bool = False


@dataclass(frozen=True)
class CleanupExplanation:
    """What a cleanup would do.

    Attributes
    ----------
    read_version
        The version it starts from.
    stats
        What it would remove.
    candidate_files
        The files, if asked for.
    candidate_files_truncated, candidate_file_limit
        Whether there are more than so many, which are left out.
    referenced_branches
        Branches whose files stay.
    warnings
        What to know besides.
    """

    read_version: int
    stats: CleanupStats
    candidate_files: list[CleanupCandidateFile]
    candidate_files_truncated: bool
    candidate_file_limit: int
    referenced_branches: list[CleanupReferencedBranch]
    warnings: list[str]


class Maintained:
    """A dataset whose old versions can be removed."""

    _manifest: Manifest
    _store: ObjectStore
    _root: str
    _uri: str
    _storage_options: dict[str, str]
    _session: Session

    @property
    def stats(self) -> LanceStats:
        """Statistics."""
        return LanceStats(cast("LanceDataset", self))

    def validate(self) -> None:
        """Check that the files of this version are there and agree with its manifest.

        Sizes of files, numbers of rows, that every column of the schema can be opened, deleted rows, row ids and row
        versions, which have to be as many as the rows, that no two rows have the same id, and the files of indices.
        Values are not read; `explain_encodings` with ``deep=True`` decodes them all.

        Raises
        ------
        CorruptFileError, MissingFileError
            Something is wrong; the message names the file.
        """
        validate_dataset(cast("LanceDataset", self))

    def cleanup_old_versions(
        self,
        older_than: dt.timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool | None = False,
        error_if_tagged_old_versions: bool | None = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        delete_concurrency: int | None = None,
    ) -> CleanupStats:
        """Remove old versions, and the files that no other version needs.

        The version this handle shows and all later ones stay; so do versions with a tag, those that a branch began from
        as long as it needs their files, and all files that branches and detached versions need. A removed version
        cannot be opened or restored any more. A version is old if all conditions that are given hold.

        Parameters
        ----------
        older_than
            It was committed so long ago; two weeks if neither this nor `retain_versions` nor `versions` is given.
        retain_versions
            It is none of so many newest versions.
        delete_unverified
            Remove files that no version refers to whatever their age. Otherwise they stay for seven days: they may
            belong to a commit that is under way. Use it only while nobody writes.
        error_if_tagged_old_versions
            Whether an old version with a tag is an error, or is silently kept.
        delete_rate_limit
            Most files to remove in a second.
        versions
            It is one of these.
        delete_concurrency
            How many files to remove at the same time.

        Returns
        -------
        CleanupStats
            What is gone.

        Raises
        ------
        InvalidInputError
            An old version has a tag; or an argument is out of range.
        CorruptFileError, UnsupportedError
            A version, tag or branch cannot be read, so that it is not known what it needs. Nothing is removed then.
        """
        policy = _policy(
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
            delete_rate_limit=delete_rate_limit,
            delete_concurrency=delete_concurrency,
        )
        return _stats(cleanup(self._store, self._root, self._manifest, policy))

    def explain_cleanup_old_versions(
        self,
        older_than: dt.timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool | None = False,
        error_if_tagged_old_versions: bool | None = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        include_files: bool = False,
        max_files: int = 1000,
    ) -> CleanupExplanation:
        """What `cleanup_old_versions` would do; nothing is removed.

        Parameters
        ----------
        older_than, retain_versions, delete_unverified, error_if_tagged_old_versions, versions
            As for `cleanup_old_versions`.
        delete_rate_limit
            Ignored.
        include_files
            Whether to name the files, `max_files` of them at most.

        Raises
        ------
        InvalidInputError, CorruptFileError, UnsupportedError
            As for `cleanup_old_versions`.
        """
        limit = checked_integer("max_files", max_files)
        if limit == 0:
            raise InvalidInputError("max_files must be positive")
        policy = _policy(
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
        )
        plan = plan_cleanup(self._store, self._root, self._manifest, policy)
        removed, files = planned_removal(plan, self._root)
        truncated = include_files and len(files) > limit
        return CleanupExplanation(
            read_version=plan.read_version,
            stats=_stats(removed),
            candidate_files=[
                CleanupCandidateFile(file.path.lstrip("/"), file.kind.value, file.unverified, file.size)
                for file in (files[:limit] if include_files else ())
            ],
            candidate_files_truncated=truncated,
            candidate_file_limit=limit,
            referenced_branches=[
                CleanupReferencedBranch(branch.name, branch.referenced_version) for branch in plan.branches.referenced
            ],
            warnings=[f"candidate_files truncated to {limit} entries"] if truncated else [],
        )

    def all_files(self) -> pa.RecordBatchReader:
        """All files below the location of the dataset, those of base paths left out.

        Returns
        -------
        pyarrow.RecordBatchReader
            Columns ``base_uri``, ``path`` (below it), ``size_bytes``, ``last_modified``.
        """

        def rows() -> Iterator[tuple[Any, ...]]:
            for info in self._store.list_tree(self._root):
                modified = round(info.modified * 1_000_000)
                yield self._uri, info.path[len(self._root) + 1 :], info.size, modified

        return _reader(_ALL_FILES, rows())

    def tracked_files(
        self, *, min_version: int | None = None, progress: Progress | None = None
    ) -> pa.RecordBatchReader:
        """All files that versions of the dataset refer to, once for each of these versions.

        Parameters
        ----------
        min_version
            Leave out smaller versions.
        progress
            Called after each version with the number of versions done and that of all.

        Returns
        -------
        pyarrow.RecordBatchReader
            Columns ``version``, ``base_uri``, ``path`` (below it), ``type``: ``manifest``, ``data file``, ``deletion
            file``, ``transaction file`` or ``index file``.
        """
        least = None if min_version is None else checked_integer("min_version", min_version)
        names = [name for name in list_versions(self._store, self._root) if least is None or name.version >= least]
        tracked = TrackedFiles(self._store, self._root, self._uri, self._storage_options, self._session)

        def rows() -> Iterator[tuple[Any, ...]]:
            for done, (manifest, files) in enumerate(read_usage(self._store, self._root, names), 1):
                for row in tracked.of_version(manifest, files):
                    yield manifest.version, *row
                if progress is not None:
                    progress(done, len(names))

        return _reader(_TRACKED_FILES, rows())


def _policy(
    older_than: dt.timedelta | None, retain_versions: int | None, versions: Sequence[int] | None, **options: Any
) -> CleanupPolicy:
    if older_than is not None and not isinstance(older_than, dt.timedelta):
        raise TypeError(f"older_than must be a datetime.timedelta, not {type(older_than).__name__}")
    if versions is not None and (isinstance(versions, str | bytes) or not isinstance(versions, Sequence | np.ndarray)):
        raise TypeError(f"versions must be a list of version numbers, not {type(versions).__name__}")
    if older_than is None and retain_versions is None and versions is None:
        older_than = _DEFAULT_AGE
    age = None if older_than is None else older_than // dt.timedelta(microseconds=1) * 1000
    switches = {name: default if options[name] is None else options[name] for name, default in _SWITCHES.items()}
    for name, value in switches.items():
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
    limits = {name: None if (value := options.get(name)) is None else checked_integer(name, value) for name in _LIMITS}
    return CleanupPolicy(
        before_nanos=None if age is None else time.time_ns() - age,
        retain_versions=None if retain_versions is None else checked_integer("retain_versions", retain_versions),
        versions=None if versions is None else frozenset(checked_integer("versions", version) for version in versions),
        delete_unverified=bool(switches["delete_unverified"]),
        error_if_tagged=bool(switches["error_if_tagged_old_versions"]),
        delete_rate_limit=limits["delete_rate_limit"],
        delete_concurrency=limits["delete_concurrency"],
    )


def _stats(removed: Removed) -> CleanupStats:
    return CleanupStats(**{field.name: getattr(removed, field.name) for field in fields(removed)})


def _reader(schema: pa.Schema, rows: Iterator[tuple[Any, ...]]) -> pa.RecordBatchReader:
    """The rows as batches of a schema, made when they are asked for."""

    def batches() -> Iterator[pa.RecordBatch]:
        while part := list(islice(rows, _BATCH_ROWS)):
            columns = zip(zip(*part, strict=True), schema.types, strict=True)
            yield pa.record_batch([pa.array(values, type_) for values, type_ in columns], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
