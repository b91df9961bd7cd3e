"""Commits of compactions: old fragments are replaced by new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_dataset._proto import table_pb2
from lance_dataset.changes.compaction.following_indices import indices_made_anew
from lance_dataset.changes.compaction.rewriting import Rewritten
from lance_dataset.errors import InvalidInputError, UnsupportedError, VersionNotFoundError
from lance_dataset.file.families import stored_indices
from lance_dataset.file.legacy import LegacyFile
from lance_dataset.file.reader import open_metadata
from lance_dataset.index.remap import indices_to_remap
from lance_dataset.read.snapshot import Snapshot
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
from lance_dataset.threads.waiting import map_waiting

__all__ = ["check_deferral", "commit_rewritten"]


def check_deferral(manifest: Manifest, deferred: bool) -> None:
    """Raise an error if the remapping of indices is deferred although it is not needed.

    Raises
    ------
    UnsupportedError
        The table has stable row ids, so its indices need not follow moved rows.
    """
    if deferred and manifest.uses_stable_row_ids:
        raise UnsupportedError(
            "Cannot compact with defer_index_remap: the dataset uses stable row ids, so indices need not follow moved "
            "rows; leave the option out"
        )


def commit_rewritten(
    snapshot: Snapshot,
    rewritten: Sequence[Rewritten],
    *,
    deferred: bool,
    storage_version: str | None = None,
    open_files: bool = False,
) -> Snapshot:
    """Commit results of tasks: reserve ids for the new fragments, then replace the old ones.

    Parameters
    ----------
    snapshot
        Version that the tasks are committed from.
    rewritten
        Results of the tasks, all from one version.
    deferred
        True if indices keep their old addresses, and a fragment-reuse index maps these to the new ones.
    storage_version
        File version that the table gets; None if it follows from that of the fragments.
    open_files
        True to check the new files of tasks that others executed, because a cleanup may have removed them.

    Raises
    ------
    CommitConflictError
        Other writers changed the old fragments, their columns, or indices on them. The files of the tasks are kept.
    UnsupportedError
        An index covers old fragments and cannot follow their rows.
    InvalidInputError
        The results do not match each other, the version or the files.
    MissingFileError, CorruptFileError
        A new file does not exist any more, or is not a data file.
    """
    read = _version_read(snapshot, rewritten)
    check_writable(read.writer_flags, read.path)
    check_deferral(read, deferred)
    groups = [each.group for each in rewritten]
    _check_groups(read, groups)
    locator = snapshot.location.locator(read)
    if open_files:
        _check_written(read, groups, locator)
    current = _with_current_coverage(snapshot, read)
    old = {fragment.id for group in groups for fragment in group.old_fragments}
    has_indices = any(not is_system_index(index) for index in parse_indices(read.index_section))
    deferred = deferred and has_indices
    if old:
        check_coverage(current)
    following = [] if deferred else indices_to_remap(current, old)
    _check_whole_groups(current, groups)
    version = storage_version or _upgrade(read, groups)
    moved = _moved_rows(rewritten) if deferred or following else []
    base = _with_reserved(snapshot, read, groups, always=deferred)
    if base is None:
        _check_not_followed(read, following)
        following, deferred = [], False
    else:
        following = indices_to_remap(_with_current_coverage(snapshot, base), old) if following else []
        groups = _numbered(groups, base.max_fragment_id or 0)
        moved = [replace(each, new_fragments=group.new_fragments) for each, group in zip(moved, groups, strict=False)]
    made: list[str] = []
    with ChangeFiles(snapshot.store, snapshot.root, indices=made).taken_back(read.version):
        reuse = None
        if base is not None and deferred:
            reuse = with_rewritten_rows(snapshot.store, snapshot.root, read, base.version, moved)
            made.append(reuse.uuid)
        followed = tuple(indices_made_anew(snapshot.store, snapshot.root, base or read, following, moved, made))
        operation = Rewrite(tuple(groups), followed, reuse_index=reuse, storage_version=version)
        change = Transaction(read.version, operation)
        committed = commit_transaction(snapshot.store, snapshot.root, change, read_manifest=read)
    return snapshot.followed_by(committed)


def _with_current_coverage(snapshot: Snapshot, manifest: Manifest) -> Manifest:
    locator = snapshot.location.locator(manifest)
    return replace(manifest, index_section=with_current_coverage(manifest.index_section, locator))


def _version_read(snapshot: Snapshot, rewritten: Sequence[Rewritten]) -> Manifest:
    """Return the manifest of the version that the tasks started from."""
    versions = sorted({each.read_version for each in rewritten}) or [snapshot.version]
    if len(versions) > 1:
        raise InvalidInputError(
            f"the results belong to several plans, made at the versions {versions}; commit those of each plan apart"
        )
    if versions[0] == snapshot.version:
        return snapshot.manifest
    try:
        return snapshot.location.read_manifest(versions[0])
    except VersionNotFoundError as error:
        raise InvalidInputError(
            f"the tasks started from version {versions[0]}, which does not exist any more; plan and execute again"
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
                    f"fragment {fragment.id} of a result is not that of version {read.version}; the result belongs to "
                    "another dataset or version"
                )
        old = [fragment.num_rows for fragment in group.old_fragments]
        new = sum(fragment.physical_rows for fragment in group.new_fragments)
        if None not in old and sum(filter(None, old)) != new:
            raise InvalidInputError(
                f"the fragments {[each.id for each in group.old_fragments]} have {sum(filter(None, old))} rows, but "
                f"those that replace them have {new}"
            )


def _is_same(known: Fragment, given: Fragment) -> bool:
    same = known.files == given.files and known.deletion_file == given.deletion_file
    return same and known.physical_rows in (None, 0, given.physical_rows)  # early releases did not count them


def _check_written(read: Manifest, groups: Sequence[RewriteGroup], locator: FileLocator) -> None:
    """Open the new files and check them, before they replace the old ones."""
    kept = {node.id for node in read.schema.walk()}

    def check(group: RewriteGroup) -> None:
        needed = kept & {field_id for each in group.old_fragments for file in each.files for field_id in file.fields}
        for fragment in group.new_fragments:
            missing = needed - {field_id for file in fragment.files for field_id in file.fields}
            if missing:
                raise InvalidInputError(f"a new fragment lacks the fields {sorted(missing)} of the old ones")
            for file in fragment.files:
                _check_file(locator, file, fragment.physical_rows)

    map_waiting(check, groups)


def _check_file(locator: FileLocator, file: DataFile, rows: int | None) -> None:
    store, path = locator.data_file(file)
    opened = open_metadata(store.open_input(path), file.fields, legacy=file.is_legacy)
    if opened.num_rows != rows:
        raise InvalidInputError(f"{store.uri(path)}: has {opened.num_rows} rows, but its fragment should have {rows}")
    if file.file_size_bytes and file.file_size_bytes != opened.source.size:
        raise InvalidInputError(
            f"{store.uri(path)}: has {opened.source.size} bytes, but its result says {file.file_size_bytes}"
        )
    if isinstance(opened, LegacyFile):
        return
    own = {index for _, index in stored_indices(opened)}
    said = {index for index in file.column_indices if index >= 0}
    same = own == said and len(file.fields) == len(file.column_indices)
    if not same or opened.version != file.storage_version:
        raise InvalidInputError(f"{store.uri(path)}: does not have the columns or the version that its result says")


def _check_whole_groups(manifest: Manifest, groups: Sequence[RewriteGroup]) -> None:
    """Raise InvalidInputError if an index covers only a part of a group.

    It would then be unknown which of the new fragments the index covers.
    """
    for index in parse_indices(manifest.index_section):
        covered = None if is_system_index(index) else coverage(index)
        if covered is None:
            continue
        for group in groups:
            old = {fragment.id for fragment in group.old_fragments}
            if not covered.isdisjoint(old) and not covered.issuperset(old):
                raise InvalidInputError(
                    f"the index {index.name!r} covers the fragments {sorted(covered & old)} of the group {sorted(old)} "
                    "and not the others; plan again, which keeps them apart"
                )


def _upgrade(read: Manifest, groups: Sequence[RewriteGroup]) -> str | None:
    """Return the version of new files if it cannot be mixed with the old ones; all old files must then be replaced."""
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
    snapshot: Snapshot, read: Manifest, groups: Sequence[RewriteGroup], *, always: bool
) -> Manifest | None:
    """Commit a version that reserves ids for the new fragments; return the newest version if there are none.

    Return None if the newest version shows that the commit is going to fail. That commit then raises the error.
    """
    count = sum(len(group.new_fragments) for group in groups)
    newest = read_newest(snapshot.store, snapshot.root)
    old = [fragment for group in groups for fragment in group.old_fragments]
    known = [newest.fragment(fragment.id) for fragment in old]
    same = all(found is not None and _has_same_rows(found, each) for found, each in zip(known, old, strict=True))
    if same and newest.index_section != read.index_section:
        indices, ours = (_indices_on(_with_current_coverage(snapshot, each), old) for each in (newest, read))
        same = indices <= ours
    if (not same and not always) or is_detached(read.version):
        return None
    if is_mixture(newest.fragment_list.columns.storage_versions) and not always:
        return None  # a mixed table cannot be committed; only the rewrite itself ends the mixture
    if count == 0:
        return newest
    change = Transaction(newest.version, ReserveFragments(count))
    return commit_transaction(snapshot.store, snapshot.root, change, read_manifest=newest)


def _indices_on(manifest: Manifest, fragments: Sequence[Fragment]) -> set[tuple[str, int]]:
    """Return the names and creation times of the indices that cover some of the fragments.

    An index keeps both when it is remapped for a rewrite. An extended or replaced index has another creation time.
    """
    ids = {fragment.id for fragment in fragments}
    found = set()
    for index in parse_indices(manifest.index_section):
        covered = coverage(index)
        if not is_system_index(index) and (covered is None or not covered.isdisjoint(ids)):
            found.add((index.name, index.created_at))
    return found


def _has_same_rows(known: Fragment, given: Fragment) -> bool:
    """Return True if two states of a fragment have the same files.

    Other facts about the files are ignored, because any commit may add some.
    """

    def places(fragment: Fragment) -> tuple[object, ...]:
        deletion = fragment.deletion_file
        deleted = None if deletion is None else (deletion.file_type, deletion.read_version, deletion.id)
        return deleted, *((file.path, file.base_id) for file in fragment.files)

    return places(known) == places(given)


def _numbered(groups: Sequence[RewriteGroup], highest: int) -> list[RewriteGroup]:
    """Number the new fragments of the groups; the last one gets the highest id."""
    next_id = highest + 1 - sum(len(group.new_fragments) for group in groups)
    numbered = []
    for group in groups:
        new = tuple(replace(fragment, id=next_id + place) for place, fragment in enumerate(group.new_fragments))
        next_id += len(new)
        numbered.append(replace(group, new_fragments=new))
    return numbered


def _check_not_followed(read: Manifest, following: Sequence[table_pb2.IndexMetadata]) -> None:
    """Raise UnsupportedError if indices need ids of new fragments, but none could be reserved."""
    if following and is_mixture(read.fragment_list.columns.storage_versions):
        raise UnsupportedError(
            f"version {read.version} has files of storage version 0.1 and of later ones, so ids of new fragments, "
            f"which the index {following[0].name!r} needs, cannot be reserved; drop the index first"
        )


def _moved_rows(rewritten: Sequence[Rewritten]) -> list[RewrittenRows]:
    """Return the rows that each task moved, from its old fragments to its new ones."""
    rows = []
    for each in rewritten:
        group = each.group
        if each.surviving is None:
            raise InvalidInputError(
                "a result does not say which rows were written, so indices cannot follow them; execute its task again, "
                "or with defer_index_remap=True"
            )
        limits = {fragment.id: fragment.physical_rows for fragment in group.old_fragments}
        runs = decode_treemap(each.surviving, limits, "row_addrs of a result")
        survivors = sum(int(lengths.sum()) for _, lengths in runs.values())
        if survivors != sum(fragment.physical_rows for fragment in group.new_fragments):
            raise InvalidInputError(f"a result lists {survivors} rows of the fragments {sorted(limits)}, not all")
        rows.append(RewrittenRows(each.surviving, group.old_fragments, group.new_fragments))
    return rows
