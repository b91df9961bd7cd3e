"""Internal indices of a table: the fragment-reuse index and the MemWAL index."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Mapping, Sequence

from lance_dataset._proto import system_indices_pb2, table_pb2
from lance_dataset.errors import InvalidInputError
from lance_dataset.table.index_metadata import uuid_from_proto, uuid_to_proto
from lance_dataset.table.indices.coverage import (
    MEMORY_INDEX,
    REUSE_INDEX,
    coverage,
    encode_indices,
    is_system_index,
    parse_indices,
    set_coverage,
)
from lance_dataset.table.indices.reuse import read_reuse_content
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.messages import parse_message
from lance_dataset.table.operations import CompactedSsTable
from lance_dataset.table.paths import FileLocator

__all__ = ["with_current_coverage", "with_generations", "with_true_catch_up"]


def with_current_coverage(section: bytes | None, locator: FileLocator | None = None) -> bytes | None:
    """Return a list of indices that cover the fragments that replaced rewritten ones.

    If a rewrite left indices unchanged, the fragment-reuse index maps its old fragments to the new ones. The bitmaps of
    the indices follow with the next change of the table. They stay unchanged for groups that an index covers only in
    part.

    Parameters
    ----------
    section
        The list.
    locator
        Finds the file of a fragment-reuse index that is too large for the list. Without it, such an index is skipped.

    Raises
    ------
    CorruptFileError
        The fragment-reuse index cannot be read.
    """
    indices = parse_indices(section)
    reuse = next((index for index in indices if index.name == REUSE_INDEX), None)
    if reuse is None:
        return section or None
    groups = _reuse_groups(reuse, locator)
    changed = False
    for index in indices:
        covered = None if is_system_index(index) else coverage(index)
        if covered is None:
            continue
        current = covered
        for old, new in groups:
            if old and current.issuperset(old):
                current = (current - old) | new
        if current != covered:
            set_coverage(index, current)
            changed = True
    return encode_indices(indices) if changed else section


def _reuse_groups(
    index: table_pb2.IndexMetadata, locator: FileLocator | None
) -> list[tuple[frozenset[int], frozenset[int]]]:
    """Return the old and new fragments of all rewrites, oldest first."""
    content = read_reuse_content(index, locator)
    return [
        (frozenset(each.id for each in group.old_fragments), frozenset(each.id for each in group.new_fragments))
        for version in content.versions
        for group in version.groups
    ]


def with_generations(
    base: Manifest, compacted: Sequence[CompactedSsTable]
) -> tuple[CompactedSsTable | None, bytes | None]:
    """Record generations of the MemWAL that were compacted into the table.

    Parameters
    ----------
    base
        The version before.
    compacted
        Highest generation of each shard.

    Returns
    -------
    stale : CompactedSsTable or None
        A generation that was compacted before.
    section : bytes or None
        The new list of indices.

    Raises
    ------
    InvalidInputError
        The table has no MemWAL.
    """
    indices = parse_indices(base.index_section)
    found = next((index for index in indices if index.name == MEMORY_INDEX), None)
    if found is None:
        raise InvalidInputError("the dataset has no MemWAL, so no generations of it can have been compacted")
    where = f"index {found.name!r}"
    details = parse_message(system_indices_pb2.MemWalIndexDetails, found.index_details.value, where)
    recorded = {uuid_from_proto(each.shard_id, where): each for each in details.compacted_sstables}
    for each in compacted:
        known = recorded.get(each.shard_id)
        if known is None:
            known = details.compacted_sstables.add(shard_id=uuid_to_proto(each.shard_id))
        elif known.generation >= each.generation:
            return each, base.index_section
        known.generation = each.generation
    _renew(found, details, base.version + 1)
    return None, encode_indices(indices)


def _renew(index: table_pb2.IndexMetadata, details: system_indices_pb2.MemWalIndexDetails, version: int) -> None:
    """Write changed details of a MemWAL index, which gets another id."""
    index.uuid.CopyFrom(uuid_to_proto(str(uuid.uuid4())))
    index.dataset_version = version
    index.created_at = time.time_ns() // 1_000_000
    index.index_details.value = details.SerializeToString()


def with_true_catch_up(
    before: bytes | None, after: bytes | None, version: int, fragment_ids: Collection[int] = ()
) -> bytes | None:
    """Return a list of indices whose MemWAL index records how much of the compacted data each index covers.

    An index that covers all fragments of the version before covers all that was compacted by then. Progress that is
    known stays for unchanged indices. Without a record, readers do not rely on an index.

    Parameters
    ----------
    before, after
        The lists of the version before and of the new one.
    version
        Number of the new version.
    fragment_ids
        Fragments of the version before.
    """
    indices = parse_indices(after)
    found = next((index for index in indices if index.name == MEMORY_INDEX), None)
    if found is None:
        return after
    details = parse_message(system_indices_pb2.MemWalIndexDetails, found.index_details.value, f"index {found.name!r}")
    old_indices = parse_indices(before)
    old, new = _segments(old_indices), _segments(indices)
    same = [each for each in details.index_catchup if old.get(each.index_name) == new.get(each.index_name)]
    known = {each.index_name: each for each in same}
    earned = _compacted(old_indices)
    if earned and fragment_ids:
        for name in _covering(indices, frozenset(fragment_ids)):
            known[name] = _advanced(known.get(name), name, earned)
    made = [known[name] for name in sorted(known)]
    if made == list(details.index_catchup):
        return after
    del details.index_catchup[:]
    details.index_catchup.extend(made)
    _renew(found, details, version)
    return encode_indices(indices)


def _compacted(indices: Sequence[table_pb2.IndexMetadata]) -> dict[bytes, int]:
    """Return the compacted generation of each shard."""
    found = next((index for index in indices if index.name == MEMORY_INDEX), None)
    if found is None:
        return {}
    details = parse_message(system_indices_pb2.MemWalIndexDetails, found.index_details.value, f"index {found.name!r}")
    return {each.shard_id.uuid: each.generation for each in details.compacted_sstables}


def _covering(indices: Sequence[table_pb2.IndexMetadata], fragment_ids: frozenset[int]) -> list[str]:
    """Return the names of indices whose segments cover all fragments together."""
    covered: dict[str, frozenset[int]] = {}
    for index in indices:
        if not is_system_index(index):
            covered[index.name] = covered.get(index.name, frozenset()) | (coverage(index) or frozenset())
    return [name for name, ids in covered.items() if ids >= fragment_ids]


def _advanced(
    known: system_indices_pb2.IndexCatchupProgress | None, name: str, earned: Mapping[bytes, int]
) -> system_indices_pb2.IndexCatchupProgress:
    """Return the progress of an index that is at least at some generations."""
    made = system_indices_pb2.IndexCatchupProgress(index_name=name)
    if known is not None:
        made.CopyFrom(known)
    left = dict(earned)
    for each in made.caught_up_generations:
        each.generation = max(each.generation, left.pop(each.shard_id.uuid, 0))
    for shard, generation in left.items():
        made.caught_up_generations.add(shard_id=table_pb2.UUID(uuid=shard), generation=generation)
    return made


def _segments(indices: Sequence[table_pb2.IndexMetadata]) -> dict[str, set[tuple[bytes, bytes]]]:
    """Return the ids and bitmaps of the segments of every index."""
    found: dict[str, set[tuple[bytes, bytes]]] = {}
    for index in indices:
        found.setdefault(index.name, set()).add((index.uuid.uuid, index.fragment_bitmap))
    return found
