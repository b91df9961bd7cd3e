"""Checks, cleanups and refreshed indices by tasks of Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lance_dataset import CleanupStats
from lance_dataset import dataset as open_dataset
from lance_dataset.errors import CorruptFileError, InvalidInputError, LanceError, nearest_name_hint
from lance_dataset.spark.jobs.shares import cores, grouped
from lance_dataset.spark.jobs.tasks import Work, run_tasks
from lance_dataset.spark.option_parsing import storage_options_text
from lance_dataset.spark.snapshot import Snapshot, pin

__all__ = ["cleanup", "refresh_indices", "validate"]

#: Shares for each core, so that all cores stay busy if some fragments are large.
_SHARES = 4
#: Rows of a new segment: searches look into each segment, so there should be few.
_SEGMENT_ROWS = 1_000_000
_MOST_SHOWN = 10


def validate(
    spark: Any,
    uri: str,
    *,
    version: int | str | None = None,
    values: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Check a version with tasks that check some fragments each; return the numbers of fragments and rows.

    The checks are those of ``LanceDataset.validate``. Row ids, index files and the shards of a MemWAL are checked by
    the driver.

    Parameters
    ----------
    spark
        Spark session.
    uri
        Path or URI of the dataset.
    version
        Version number or tag; the newest version by default.
    values
        True to read and decode all values, too, except for those of blob columns.
    storage_options
        Settings of the object store.

    Raises
    ------
    CorruptFileError, MissingFileError
        Something is damaged. The message names the fragments and files.
    """
    snapshot, dataset = pin(uri, version, storage_options_text(storage_options))
    dataset.validate(fragments=False)
    checks = _Checks(grouped(dataset.fragment_ids(), _SHARES * cores(spark)), snapshot, values)
    damages = [damage for group in run_tasks(spark, checks) for damage in group]
    if damages:
        shown = "; ".join(damages[:_MOST_SHOWN])
        more = f"; and {len(damages) - _MOST_SHOWN} more" if len(damages) > _MOST_SHOWN else ""
        raise CorruptFileError(f"Version {snapshot.version} of {uri} is damaged: {shown}{more}")
    return {"fragments": len(dataset.fragment_ids()), "rows": int(dataset.count_rows())}


class _Checks(Work):
    """Checks of some fragments in each task. The results are texts that say what is damaged."""

    def __init__(self, pieces: Sequence[list[int]], snapshot: Snapshot, values: bool) -> None:
        super().__init__(pieces)
        self.snapshot = snapshot
        self.values = values

    def describe(self, piece: list[int]) -> str:
        return f"the check of fragments {piece[0]} to {piece[-1]} of {self.snapshot.uri}"

    def run(self, piece: list[int]) -> list[str]:
        dataset = self.snapshot.open()
        found = []
        for number in piece:
            fragment = dataset.get_fragment(number)
            try:
                fragment.validate()
                if self.values:
                    for _ in fragment.to_batches():
                        pass
            except LanceError as error:
                found.append(f"fragment {number}: {error}")
        return found


def cleanup(
    spark: Any, uri: str, *, storage_options: Mapping[str, str] | None = None, **conditions: Any
) -> CleanupStats:
    """Remove old versions and the files that no other version needs, with tasks.

    The driver reads the versions and removes old ones. Tasks list the folders, one each, and remove the files.

    Parameters
    ----------
    spark
        Spark session.
    uri
        Path or URI of the dataset.
    storage_options
        Settings of the object store.
    **conditions
        Those of ``LanceDataset.cleanup_old_versions``, such as ``older_than`` and ``retain_versions``. With a
        ``delete_rate_limit``, the driver removes the files.

    Returns
    -------
    CleanupStats
        Counts of the removed versions and files.

    Raises
    ------
    InvalidInputError
        An old version has a tag, an argument is out of range, or the dataset is in the memory of this process.
    CorruptFileError, UnsupportedError
        A version, tag or branch cannot be read, so the files that it needs are unknown. Nothing is removed then.
    TaskError
        A task failed. Old versions may be gone, and files that no version needs are left to the next cleanup.
    """
    if uri.startswith("memory:"):
        raise InvalidInputError(f"{uri} is in the memory of the driver, which tasks cannot reach")
    dataset = open_dataset(uri, storage_options=dict(storage_options or {}) or None)

    def run_shares(shares: Sequence[Callable[[], Any]]) -> list[Any]:
        groups = grouped(range(len(shares)), _SHARES * cores(spark))
        done = run_tasks(spark, _Shares([[shares[number] for number in group] for group in groups], uri))
        return [result for group in done for result in group]

    return dataset.cleanup_old_versions(**conditions, run_shares=run_shares)


class _Shares(Work):
    """Some shares of a cleanup in each task."""

    def __init__(self, pieces: Sequence[list[Callable[[], Any]]], uri: str) -> None:
        super().__init__(pieces)
        self.uri = uri

    def describe(self, piece: list[Callable[[], Any]]) -> str:
        return f"the cleanup of {self.uri}"

    def run(self, piece: list[Callable[[], Any]]) -> list[Any]:
        return [share() for share in piece]


def refresh_indices(
    spark: Any,
    uri: str,
    names: Sequence[str] | None = None,
    *,
    segments: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Add the rows that indices lack to them, in segments that tasks build.

    All segments of all indices are published in one commit. They have the parameters and the models of their index;
    nothing is merged or trained anew, which ``LanceDataset.optimize.optimize_indices`` does.

    Parameters
    ----------
    spark
        Spark session.
    uri
        Path or URI of the dataset.
    names
        Names of the indices; all by default.
    segments
        Number of new segments of each index; by default one for each million rows, and no more than cores.
    storage_options
        Settings of the object store.

    Returns
    -------
    dict
        Number of new segments by index, of the indices that lacked rows.

    Raises
    ------
    InvalidInputError
        There is no index of a name.
    CommitConflictError
        Other writers changed the same rows or indices meanwhile. Nothing is published.
    TaskError
        A task failed, for example because this release does not build indices of the kind. Nothing is published.
    """
    snapshot, dataset = pin(uri, None, storage_options_text(storage_options))
    known = {index.name: index for index in dataset.describe_indices()}
    for name in names or ():
        if name not in known:
            raise InvalidInputError(f"The dataset has no index {name!r}{nearest_name_hint(name, list(known))}")
    rows = {fragment.fragment_id: fragment.count_rows() for fragment in dataset.get_fragments()}
    pieces: list[tuple[str, list[int]]] = []
    for name in dict.fromkeys(known if names is None else names):
        left = sorted(set(rows).difference(*(segment.fragment_ids for segment in known[name].segments)))
        count = segments or min(cores(spark), sum(rows[each] for each in left) // _SEGMENT_ROWS + 1)
        pieces += [(name, group) for group in grouped(left, count)]
    built: dict[str, list[Any]] = {}
    for (name, _), segment in zip(pieces, run_tasks(spark, _Additions(pieces, snapshot)), strict=True):
        built.setdefault(name, []).append(segment)
    if built:
        dataset.commit_index_segments_together(built)
    return {name: len(made) for name, made in built.items()}


class _Additions(Work):
    """A new segment of an index in each task."""

    def __init__(self, pieces: Sequence[tuple[str, list[int]]], snapshot: Snapshot) -> None:
        super().__init__(pieces)
        self.snapshot = snapshot

    def describe(self, piece: tuple[str, list[int]]) -> str:
        name, numbers = piece
        return f"the index {name!r} for fragments {numbers[0]} to {numbers[-1]} of {self.snapshot.uri}"

    def run(self, piece: tuple[str, list[int]]) -> Any:
        name, numbers = piece
        return self.snapshot.open().extend_index_uncommitted(name, numbers)
