"""Collection of files of shards that nothing needs any more."""

from __future__ import annotations

import datetime as dt
import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lance_dataset.errors import CorruptFileError, MissingFileError
from lance_dataset.io.base import ObjectInfo
from lance_dataset.memwal.details import MemWalDetails, find_details, required_details
from lance_dataset.memwal.log import log_end
from lance_dataset.memwal.log_entries import decode_entry
from lance_dataset.memwal.places import ShardPlace, number_of
from lance_dataset.memwal.shard_manifest import ShardManifest
from lance_dataset.memwal.shard_versions import KEPT_MANIFESTS, manifest_versions, read_shard, update_shard
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.indices.coverage import is_system_index, parse_indices
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import is_detached
from lance_dataset.table.versions import list_versions

__all__ = ["Collected", "collect_shard", "is_sstable", "leftovers"]

#: Larger entries have rows.
_MAX_FENCE_BYTES = 4096
_FOLDER = re.compile(r"[0-9a-f]{8}_gen_([0-9]{1,18})")


@dataclass(frozen=True)
class Collected:
    """Result of collecting the files of a shard.

    Attributes
    ----------
    sstables
        Number of SSTables that were removed.
    entries
        Number of entries of the log that were removed.
    manifests
        Number of manifests of the shard that were removed.
    """

    sstables: int = 0
    entries: int = 0
    manifests: int = 0


def collect_shard(snapshot: Snapshot, shard_id: str, older_than: dt.timedelta) -> Collected:
    """Remove SSTables that all versions of the table contain, and entries of the log that are in SSTables.

    Kept are SSTables that a version of the table lacks, or that an index does not cover yet; all entries that fence
    earlier writers; the last entry; and the newest manifests of the shard.

    Parameters
    ----------
    snapshot
        The newest version of the table.
    shard_id
        Id of the shard.
    older_than
        Files that were written in this time stay, for readers that may still use them.

    Raises
    ------
    InvalidInputError
        The table has no MemWAL.
    CorruptFileError
        A manifest cannot be read. Nothing was removed.
    """
    place = ShardPlace(snapshot.store, snapshot.root, shard_id)
    shard = read_shard(place)
    if shard is None:
        return Collected()
    before = time.time() - older_than.total_seconds()
    limit = _needed_after(snapshot, shard_id)
    if any(table.generation <= limit for table in shard.sstables):
        shard = update_shard(place, None, lambda known: _without(known, limit))
    return Collected(
        _remove_sstables(place, shard, before), _remove_entries(place, shard, before), _remove_manifests(place, before)
    )


def _without(known: ShardManifest, limit: int) -> ShardManifest:
    return replace(known, sstables=tuple(table for table in known.sstables if table.generation > limit))


def _needed_after(snapshot: Snapshot, shard_id: str) -> int:
    """Return the generation up to which no reader needs SSTables of a shard."""
    details = required_details(snapshot.manifest)
    limit = details.compacted.get(shard_id, 0)
    for name in _read_indices(snapshot.manifest, details):
        limit = min(limit, details.caught_up.get(name, {}).get(shard_id, 0))
    if limit:
        for version in _versions(snapshot):
            manifest = snapshot.location.read_manifest(version)
            known = find_details(manifest)
            if known is not None:
                limit = min(limit, known.compacted.get(shard_id, 0))
    return limit


def _read_indices(manifest: Manifest, details: MemWalDetails) -> list[str]:
    """Return the names of the indices that searches of shards rely on."""
    names = {index.name for index in parse_indices(manifest.index_section) if not is_system_index(index)}
    chosen = names if details.maintain_all_indexes else names & set(details.maintained_indexes)
    return sorted(chosen)


def _versions(snapshot: Snapshot) -> list[int]:
    found = list_versions(snapshot.store, snapshot.root)
    return [each.version for each in found if not is_detached(each.version) and each.version < snapshot.version]


def is_sstable(folder: str) -> bool:
    """Return True if a folder of a shard is named like one of an SSTable."""
    return _FOLDER.fullmatch(folder) is not None


def leftovers(snapshot: Snapshot, shard: ShardManifest) -> Iterator[ObjectInfo]:
    """Yield the files of a shard that a collection with no respect for their age would remove.

    Errors are those of `collect_shard`. Nothing is changed.

    Parameters
    ----------
    snapshot
        The newest version of the table.
    shard
        The newest manifest of the shard.
    """
    place = ShardPlace(snapshot.store, snapshot.root, shard.shard_id)
    kept = _without(shard, _needed_after(snapshot, shard.shard_id))
    folders = set(_unneeded_folders(place, kept, math.inf))
    for info in place.store.list_tree(place.root):
        if _folder_of(place, info) in folders:
            yield info
    yield from _unneeded_entries(place, kept, math.inf)
    yield from _unneeded_manifests(place, math.inf)


def _folder_of(place: ShardPlace, info: ObjectInfo) -> str:
    return info.path[len(place.root) + 1 :].partition("/")[0]


def _remove_sstables(place: ShardPlace, shard: ShardManifest, before: float) -> int:
    count = 0
    for folder in _unneeded_folders(place, shard, before):
        place.store.delete_tree(f"{place.root}/{folder}")
        count += 1
    return count


def _unneeded_folders(place: ShardPlace, shard: ShardManifest, before: float) -> list[str]:
    """Return the folders of SSTables that no manifest names and no flush is writing."""
    named = {table.path for table in shard.sstables}
    written: dict[str, float] = {}
    for info in place.store.list_tree(place.root):
        folder = _folder_of(place, info)
        written[folder] = max(info.modified, written.get(folder, 0.0))
    matches = ((_FOLDER.fullmatch(folder), modified) for folder, modified in written.items() if folder not in named)
    return [
        match[0] for match, modified in matches if match and int(match[1]) < shard.generation and modified <= before
    ]


def _remove_entries(place: ShardPlace, shard: ShardManifest, before: float) -> int:
    count = 0
    for info in _unneeded_entries(place, shard, before):
        place.store.delete(info.path)
        count += 1
    if count:
        place.store.sync(place.log)
    return count


def _unneeded_entries(place: ShardPlace, shard: ShardManifest, before: float) -> Iterator[ObjectInfo]:
    """Yield entries of the log that are in SSTables, but neither fences nor the last entry."""
    last = log_end(place, shard) - 1
    for info in place.store.list(place.log):
        position = number_of(info.name, ".arrow")
        if position is None or position > shard.replay_after or position >= last or info.modified > before:
            continue
        if info.size > _MAX_FENCE_BYTES or not _is_fence(place, info.path):
            yield info


def _remove_manifests(place: ShardPlace, before: float) -> int:
    count = 0
    for info in _unneeded_manifests(place, before):
        place.store.delete(info.path)
        count += 1
    if count:
        place.store.sync(place.manifests)
    return count


def _unneeded_manifests(place: ShardPlace, before: float) -> Iterator[ObjectInfo]:
    """Yield old manifests, the oldest first, so that those that stay have no gap, wherever a removal ends."""
    infos = {number_of(info.name, ".binpb"): info for info in place.store.list(place.manifests)}
    for version in manifest_versions(place)[:-KEPT_MANIFESTS]:
        info = infos.get(version)
        if info is None or info.modified > before:
            break
        yield info


def _is_fence(place: ShardPlace, path: str) -> bool:
    try:
        return decode_entry(place.store.read(path), path).is_sentinel
    except CorruptFileError:
        return True
    except MissingFileError:
        return True
