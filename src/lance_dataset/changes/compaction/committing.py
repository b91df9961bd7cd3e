"""Putting new fragments in the place of old ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lance_dataset._proto import table_pb2
from lance_dataset.changes.compaction.following_indices import indices_made_anew
from lance_dataset.changes.compaction.rewriting import Rewritten
from lance_dataset.errors import InvalidInputError, UnsupportedError, VersionNotFoundError
from lance_dataset.file.families import stored_indices
from lance_dataset.file.reader import open_metadata
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.index.remap import indices_to_remap
from lance_dataset.io.threads import for_each
from lance_dataset.table.checks import is_mixture
from lance_dataset.table.commit.leftovers import ChangeFiles
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.indices.coverage import check_coverage, coverage, is_system_index, parse_indices
from lance_dataset.table.indices.reuse import RewrittenRows, with_rewritten_rows
from lance_dataset.table.indices.system import with_current_coverage
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import is_detached
from lance_dataset.table.operations import ReserveFragments, Rewrite, RewriteGroup
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.roaring import decode_treemap
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import read_newest

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["check_deferral", "commit_rewritten"]


def check_deferral(manifest: Manifest, deferred: bool) -> None:
    """Refuse to leave indices as they are where they hold row ids: nothing would have to follow moved rows.

    Raises
    ------
    UnsupportedError
        The table has stable row ids.
    """
    if deferred and manifest.uses_stable_row_ids:
        raise UnsupportedError(
            "Cannot compact with defer_index_remap: the dataset uses stable row ids, with which indices need not "
            "follow moved rows; leave the option out"
        )


def commit_rewritten(
    dataset: LanceDataset,
    rewritten: Sequence[Rewritten],
    *,
    deferred: bool,
    storage_version: str | None = None,
    open_files: bool = False,
) -> Manifest:
    """Commit what tasks made: ids are set aside for the new fragments, then they take the place of the old ones.

    Parameters
    ----------
    dataset
        A handle on the dataset, which stays on its version.
    rewritten
        What the tasks made, all from one version.
    deferred
        Whether a fragment-reuse index tells indices where rows are.
    storage_version
        File version that the table gets, None where it follows from that of the fragments.
    open_files
        Whether to look at the new files, for tasks that others executed: a cleanup may have removed them.

    Raises
    ------
    CommitConflictError
        Others changed the old fragments, their columns, or indices on them; what the tasks made stays.
    UnsupportedError
        An index covers old fragments and cannot follow their rows.
    InvalidInputError
        The tasks do not go together, or not with the version or the files.
    MissingFileError, CorruptFileError
        A new file is not there any more, or no data file.
    """
    read = _version_read(dataset, rewritten)
    check_writable(read.writer_flags, read.path)
    check_deferral(read, deferred)
    groups = [each.group for each in rewritten]
    _check_groups(read, groups)
    locator = FileLocator(dataset._store, dataset._root, read.base_paths)
    if open_files:
        _check_written(read, groups, locator)
    current = replace(read, index_section=with_current_coverage(read.index_section, locator))
    old = {fragment.id for group in groups for fragment in group.old_fragments}
    has_indices = any(not is_system_index(index) for index in parse_indices(read.index_section))
    deferred = deferred and has_indices
    if old:
        check_coverage(current)
    following = [] if deferred else indices_to_remap(current, old)
    _check_whole_groups(current, groups)
    version = storage_version or _upgrade(read, groups)
    moved = _moved_rows(rewritten) if deferred or following else []
    base = _with_reserved(dataset, read, groups, always=deferred)
    if base is None:
        _check_not_followed(read, following)
        following, deferred = [], False
    else:
        groups = _numbered(groups, base.max_fragment_id or 0)
        moved = [replace(each, new_fragments=group.new_fragments) for each, group in zip(moved, groups, strict=False)]
    made: list[str] = []
    with ChangeFiles(dataset._store, dataset._root, indices=made).taken_back(read.version):
        reuse, followed = None, []
        if base is not None and deferred:
            reuse = with_rewritten_rows(dataset._store, dataset._root, read, base.version, moved)
            made.append(reuse.uuid)
        for index in indices_made_anew(dataset._store, dataset._root, locator, read, following, moved):
            followed.append(index)
            made.append(index.new_id)
        operation = Rewrite(tuple(groups), tuple(followed), reuse_index=reuse, storage_version=version)
        change = Transaction(read.version, operation)
        return commit_transaction(dataset._store, dataset._root, change, read_manifest=read)


def _version_read(dataset: LanceDataset, rewritten: Sequence[Rewritten]) -> Manifest:
    """The version that the tasks started from."""
    versions = sorted({each.read_version for each in rewritten}) or [dataset.version]
    if len(versions) > 1:
        raise InvalidInputError(
            f"the results are of tasks of several plans, made at the versions {versions}; commit those of each apart"
        )
    if versions[0] == dataset.version:
        return dataset._manifest
    try:
        return dataset._load(versions[0])
    except VersionNotFoundError as error:
        raise InvalidInputError(
            f"the tasks started from version {versions[0]}, which is not there any more; plan and execute anew"
        ) from error


def _check_groups(read: Manifest, groups: Sequence[RewriteGroup]) -> None:
    seen: set[int] = set()
    for group in groups:
        for fragment in group.old_fragments:
            if fragment.id in seen:
                raise InvalidInputError(f"fragment {fragment.id} is replaced by several results; commit one of them")
            seen.add(fragment.id)
            known = read.fragment(fragment.id)
            if known is None or not _is_same(known, fragment):
                raise InvalidInputError(
                    f"fragment {fragment.id} of a result is not that of version {read.version}; the result is of "
                    "another dataset or version"
                )
        old = [fragment.num_rows for fragment in group.old_fragments]
        new = sum(fragment.physical_rows for fragment in group.new_fragments)
        if None not in old and sum(filter(None, old)) != new:
            raise InvalidInputError(
                f"the fragments {[each.id for each in group.old_fragments]} have {sum(filter(None, old))} rows, those "
                f"in their place {new}"
            )


def _is_same(known: Fragment, given: Fragment) -> bool:
    same = known.files == given.files and known.deletion_file == given.deletion_file
    return same and known.physical_rows in (None, 0, given.physical_rows)  # early releases did not count them


def _check_written(read: Manifest, groups: Sequence[RewriteGroup], locator: FileLocator) -> None:
    """Open the new files, before old ones are given up for them."""
    kept = {node.id for node in read.schema.walk()}

    def check(group: RewriteGroup) -> None:
        needed = kept & {field_id for each in group.old_fragments for file in each.files for field_id in file.fields}
        for fragment in group.new_fragments:
            missing = needed - {field_id for file in fragment.files for field_id in file.fields}
            if missing:
                raise InvalidInputError(f"a new fragment lacks the fields {sorted(missing)} of the old ones")
            for file in fragment.files:
                _check_file(locator, file, fragment.physical_rows)

    for_each(check, groups)


def _check_file(locator: FileLocator, file: DataFile, rows: int | None) -> None:
    store, path = locator.data_file(file)
    opened = open_metadata(store.open_input(path), file.fields, legacy=file.is_legacy)
    if opened.num_rows != rows:
        raise InvalidInputError(f"{store.uri(path)}: has {opened.num_rows} rows, its fragment should have {rows}")
    if file.file_size_bytes and file.file_size_bytes != opened.source.size:
        raise InvalidInputError(
            f"{store.uri(path)}: has {opened.source.size} bytes, its result says {file.file_size_bytes}"
        )
    if isinstance(opened, LegacyFile):
        return
    own = {index for _, index in stored_indices(opened)}
    said = {index for index in file.column_indices if index >= 0}
    same = own == said and len(file.fields) == len(file.column_indices)
    if not same or opened.version != file.storage_version:
        raise InvalidInputError(f"{store.uri(path)}: does not have the columns or the version that its result says")


def _check_whole_groups(manifest: Manifest, groups: Sequence[RewriteGroup]) -> None:
    """Refuse groups of which an index covers a part: nothing could say what of the new fragments it covers."""
    for index in parse_indices(manifest.index_section):
        covered = None if is_system_index(index) else coverage(index)
        if covered is None:
            continue
        for group in groups:
            old = {fragment.id for fragment in group.old_fragments}
            if not covered.isdisjoint(old) and not covered.issuperset(old):
                raise InvalidInputError(
                    f"the index {index.name!r} covers the fragments {sorted(covered & old)} of the group {sorted(old)} "
                    "and not the others; plan anew, which keeps them apart"
                )


def _upgrade(read: Manifest, groups: Sequence[RewriteGroup]) -> str | None:
    """Version of new files that do not mix with those of the table; all of these have to go then."""
    written = {file.storage_version for group in groups for each in group.new_fragments for file in each.files}
    if not is_mixture(written | {read.storage_version}):
        return None
    old = {fragment.id for group in groups for fragment in group.old_fragments}
    left = sorted(set(read.fragment_list.ids.tolist()) - old)
    if left or len(written) > 1:
        raise UnsupportedError(
            f"files of storage version {', '.join(sorted(written))} do not mix with those of version "
            f"{read.storage_version} in the fragments {left}; commit the results of all tasks together"
        )
    return written.pop()


# -- ids -------------------------------------------------------------------------------------------------------------


def _with_reserved(
    dataset: LanceDataset, read: Manifest, groups: Sequence[RewriteGroup], *, always: bool
) -> Manifest | None:
    """A version in which ids are set aside for the new fragments; the newest one where there are none.

    None where the newest version shows that the commit is going to fail, which then says why.
    """
    count = sum(len(group.new_fragments) for group in groups)
    newest = read_newest(dataset._store, dataset._root)
    old = [fragment for group in groups for fragment in group.old_fragments]
    known = [newest.fragment(fragment.id) for fragment in old]
    same = newest.index_section == read.index_section and all(
        found is not None and found.files == each.files and found.deletion_file == each.deletion_file
        for found, each in zip(known, old, strict=True)
    )
    if (not same and not always) or is_detached(read.version):
        return None
    if is_mixture(newest.fragment_list.columns.storage_versions) and not always:
        return None  # only a version without the mixture can be committed, which the rewrite makes
    if count == 0:
        return newest
    change = Transaction(newest.version, ReserveFragments(count))
    return commit_transaction(dataset._store, dataset._root, change, read_manifest=newest)


def _numbered(groups: Sequence[RewriteGroup], highest: int) -> list[RewriteGroup]:
    """The groups with the last ids up to the highest one."""
    next_id = highest + 1 - sum(len(group.new_fragments) for group in groups)
    numbered = []
    for group in groups:
        new = tuple(replace(fragment, id=next_id + place) for place, fragment in enumerate(group.new_fragments))
        next_id += len(new)
        numbered.append(replace(group, new_fragments=new))
    return numbered


def _check_not_followed(read: Manifest, following: Sequence[table_pb2.IndexMetadata]) -> None:
    """Refuse to go on without ids for new fragments where indices need them."""
    if following and is_mixture(read.fragment_list.columns.storage_versions):
        raise UnsupportedError(
            f"version {read.version} has files of storage version 0.1 and of later ones, so no ids can be set aside "
            f"for new fragments, which the index {following[0].name!r} needs to know; drop the index before"
        )


def _moved_rows(rewritten: Sequence[Rewritten]) -> list[RewrittenRows]:
    """Which rows the tasks wrote, each in the place of which ones."""
    rows = []
    for each in rewritten:
        group = each.group
        if each.surviving is None:
            raise InvalidInputError(
                "a result does not say which rows were written, so no index could follow them; execute its task anew, "
                "or with defer_index_remap=True"
            )
        limits = {fragment.id: fragment.physical_rows for fragment in group.old_fragments}
        survivors = sum(map(len, decode_treemap(each.surviving, limits, "row_addrs of a result").values()))
        if survivors != sum(fragment.physical_rows for fragment in group.new_fragments):
            raise InvalidInputError(f"a result notes {survivors} rows of the fragments {sorted(limits)}, not all")
        rows.append(RewrittenRows(each.surviving, group.old_fragments, group.new_fragments))
    return rows
