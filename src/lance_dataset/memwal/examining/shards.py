"""Check of all shards of a table: manifests, logs, SSTables, and the progress of merges. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator

from lance_dataset.changes.doctor.survey import cause_of
from lance_dataset.errors import CorruptFileError, LanceError, MissingFileError, UnsupportedError
from lance_dataset.memwal.collecting import leftovers
from lance_dataset.memwal.details import MemWalDetails, find_details
from lance_dataset.memwal.examining.log import look_at_log
from lance_dataset.memwal.examining.manifests import look_at_manifests
from lance_dataset.memwal.examining.scene import RESTORE, ShardScene
from lance_dataset.memwal.examining.sstables import look_at_sstable
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.places import MEM_WAL_FOLDER, list_shards
from lance_dataset.memwal.shard_manifest import ShardManifest
from lance_dataset.memwal.shard_versions import manifest_versions
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.diagnosis import DiagnosisCause, DiagnosisKind, Finding, FindingSubject
from lance_dataset.table.naming import is_detached
from lance_dataset.table.references.names import branch_of
from lance_dataset.table.versions import list_versions

__all__ = ["examine_shards", "validate_shards"]

#: Looks at a shard whose owner publishes manifests meanwhile.
_ATTEMPTS = 3


def examine_shards(snapshot: Snapshot) -> Iterator[Finding]:
    """Find damage of the shards of a table or branch, and what a collection would remove.

    Entries of a log that are in SSTables are not read. Of all other entries and SSTables, all rows are.

    Parameters
    ----------
    snapshot
        The newest version of the table or branch.
    """
    known = list_shards(snapshot.store, snapshot.root)
    try:
        details = find_details(snapshot.manifest)
        if details is None:
            yield from _forgotten(snapshot, known)
            return
        key = KeyColumns.of(snapshot.manifest.schema)
    except LanceError as error:
        branch = branch_of(snapshot.manifest, snapshot.root)
        subject = FindingSubject(cause_of(error), branch=branch)
        what = f"the shards cannot be looked at: {error}"
        yield Finding(DiagnosisKind.SHARD, what, "see there", bool(known), subject)
        return
    for shard_id in known:
        yield from _settled(ShardScene(snapshot, details, shard_id), key)
    for shard_id in sorted(set(details.compacted) - set(known)):
        yield from _without_files(ShardScene(snapshot, details, shard_id))


def validate_shards(snapshot: Snapshot) -> None:
    """Check all shards of a table, as `examine_shards` does.

    Raises
    ------
    CorruptFileError, MissingFileError, UnsupportedError
        A file is damaged or missing, contradicts another one, or is of an unknown kind.
    """
    for finding in examine_shards(snapshot):
        if finding.is_damage:
            kinds = {DiagnosisCause.MISSING: MissingFileError, DiagnosisCause.UNSUPPORTED: UnsupportedError}
            raise kinds.get(finding.subject.cause or DiagnosisCause.CORRUPT, CorruptFileError)(finding.what)


def _forgotten(snapshot: Snapshot, known: list[str]) -> Iterator[Finding]:
    """Find the shards of a table whose newest version has no MemWAL."""
    for shard_id in known:
        scene = ShardScene(snapshot, MemWalDetails(), shard_id)
        sizes = [info.size for info in snapshot.store.list_tree(scene.place.root)]
        what = (
            f"has {len(sizes):,} files with {sum(sizes):,} bytes, but the newest version has no MemWAL: it was "
            "overwritten, or is older than the MemWAL"
        )
        remedy = f"ds.initialize_mem_wal(), if its rows belong to the table; otherwise remove {scene.place.uri}"
        yield scene.advice(what, remedy, scene.place.root, files=len(sizes), size=sum(sizes))


def _settled(scene: ShardScene, key: KeyColumns) -> list[Finding]:
    """Return what is found in a shard. Look again if a writer or a collection was at work on what seems wrong."""
    found: list[Finding] = []
    for _ in range(_ATTEMPTS):
        try:
            before = manifest_versions(scene.place)
            found = _look(scene, key)
            if all(finding.subject.cause is None for finding in found) or manifest_versions(scene.place) == before:
                break
        except (LanceError, OSError) as error:
            found = [scene.unread(error, scene.place.root, "mend the other damage, and check again")]
    return found


def _look(scene: ShardScene, key: KeyColumns) -> list[Finding]:
    findings: list[Finding] = []
    shard = look_at_manifests(scene, findings)
    if shard is None:
        return findings
    findings += _progress(scene, shard)
    findings += look_at_log(scene, shard, key)
    for table in shard.sstables:
        findings += look_at_sstable(scene, table, key)
    findings += _leftovers(scene, shard)
    return findings


def _progress(scene: ShardScene, shard: ShardManifest) -> Iterator[Finding]:
    """Find generations in the table that the shard has not made yet."""
    if scene.merged >= shard.generation:
        path = scene.place.manifest(shard.version + 1)
        what = (
            f"generation {scene.merged} is in the table, but the next one to be flushed is {shard.generation}, so "
            "merges would skip new rows, and no writer can be opened"
        )
        remedy = "put copies of the newest manifests of the shard back, which are missing, or use a new shard"
        yield scene.damage(what, remedy, DiagnosisCause.MISSING, path)


def _leftovers(scene: ShardScene, shard: ShardManifest) -> Iterator[Finding]:
    """Find files that the next collection removes."""
    try:
        files = list(leftovers(scene.snapshot, shard))
    except (LanceError, OSError) as error:
        what = f"files that nobody needs could not be looked for: {error}"
        yield scene.advice(what, "mend the other damage, and check again", scene.place.root)
        return
    if files:
        size = sum(file.size for file in files)
        what = f"nobody needs {len(files):,} files with {size:,} bytes, such as {scene.relative(files[0].path)}"
        remedy = f"ds.collect_mem_wal({scene.shard_id!r}), which removes them when they are an hour old"
        yield scene.advice(what, remedy, scene.place.root, files=len(files), size=size)


def _without_files(scene: ShardScene) -> Iterator[Finding]:
    """Find merged shards that have no files. Branches and clones inherit the progress of shards, but not the shards."""
    snapshot = scene.snapshot
    path = f"{snapshot.root}/{MEM_WAL_FOLDER}/{scene.shard_id}"
    versions = [each.version for each in list_versions(snapshot.store, snapshot.root) if not is_detached(each.version)]
    try:
        oldest = find_details(snapshot.location.read_manifest(min(versions, default=snapshot.version)))
    except (LanceError, OSError):
        oldest = None
    was_merged_here = oldest is None or oldest.compacted.get(scene.shard_id, 0) < scene.merged
    what = f"generation {scene.merged} is in the table, but {scene.place.uri} has no files"
    if was_merged_here:
        lost = f"{what}: rows that were not merged are lost"
        yield scene.damage(lost, f"{RESTORE}, if it had such rows", DiagnosisCause.MISSING, path)
    else:
        remedy = "nothing needs to be done; use other shards for new rows, as no writer of this one can be opened"
        yield scene.advice(f"{what}; a branch or a clone has none of the shards before it", remedy, path)
