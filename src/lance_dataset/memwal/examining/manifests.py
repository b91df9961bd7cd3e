"""Look at the manifests of a shard: which one readers take for the newest, and what is missing or in its way."""

from __future__ import annotations

from collections.abc import Iterator

from lance_dataset.changes.doctor.sizes import known_size
from lance_dataset.errors import LanceError, MissingFileError
from lance_dataset.memwal.collecting import is_sstable
from lance_dataset.memwal.examining.scene import RESTORE, ShardScene
from lance_dataset.memwal.shard_manifest import ShardManifest
from lance_dataset.memwal.shard_versions import (
    KEPT_MANIFESTS,
    hinted_version,
    manifest_versions,
    newest_version,
    read_version,
)
from lance_dataset.records.diagnosis import DiagnosisCause, Finding
from lance_dataset.threads.pools import storage_pool
from lance_dataset.threads.streams import stream

__all__ = ["look_at_manifests"]

_AHEAD = 15


def look_at_manifests(scene: ShardScene, findings: list[Finding]) -> ShardManifest | None:
    """Look at the manifests of a shard.

    Parameters
    ----------
    scene
        The shard.
    findings
        What was found is added.

    Returns
    -------
    ShardManifest or None
        The newest one, if it can be read.
    """
    place = scene.place
    hinted = hinted_version(place) or 0
    newest = newest_version(place)  # in this order, as a writer may publish manifests meanwhile
    if newest is None:
        findings += _without_manifests(scene)
        return None
    known = manifest_versions(place)
    findings += _lost_ones(scene, known, newest, hinted)
    findings += _unread_older(scene, [version for version in known if version != newest])
    try:
        return read_version(place, newest)
    except (LanceError, OSError) as error:
        path = place.manifest(newest)
        remedy = f"{RESTORE}; until then, the shard can neither be read nor written"
        findings.append(scene.unread(error, path, remedy, known_size(place.store, path)))
    return None


def _without_manifests(scene: ShardScene) -> Iterator[Finding]:
    """Find a shard that readers take for one that does not exist, although it has files."""
    place = scene.place
    entries = sum(name.endswith(".arrow") for name in place.store.list_names(place.log))
    hinted = hinted_version(place)
    start = len(place.root) + 1
    folders = {info.path[start:].partition("/")[0] for info in place.store.list_tree(place.root)}
    if not entries and not hinted and not any(map(is_sstable, folders)):
        return  # a writer is just making it, or never finished
    lost = f"the {entries:,} entries of its log" if entries else "the rows of its SSTables"
    what = f"{place.store.uri(place.manifests)} has no manifests, so readers ignore the shard, and {lost} may be lost"
    remedy = "put copies of its manifests back"
    if not scene.merged and not hinted:
        remedy += "; if it had none but the first, open a writer, which replays the log from entry 1 on"
    yield scene.damage(what, remedy, DiagnosisCause.MISSING, place.manifest(hinted or 1))


def _lost_ones(scene: ShardScene, known: list[int], newest: int, hinted: int) -> Iterator[Finding]:
    """Find numbers of manifests that are missing. The oldest ones are removed by collections."""
    place = scene.place
    later = [version for version in known if version > newest]
    path = place.manifest(newest + 1)
    if (later or hinted > newest) and not place.store.exists(path):
        seen = f"{len(later):,} later ones exist" if later else f"{place.store.uri(place.hint)} names {hinted}"
        what = (
            f"the manifest {newest + 1}, {place.store.uri(path)}, is missing, but {seen}; readers take {newest} for "
            "the newest one, and what was published since then is hidden"
        )
        yield scene.damage(what, f"{RESTORE}, before anyone writes to the shard", DiagnosisCause.MISSING, path)
    first = newest
    for version in reversed([each for each in known if each < newest]):
        if version != first - 1:
            break
        first = version
    if first > 1 and newest - first + 1 < KEPT_MANIFESTS:
        path = place.manifest(first - 1)
        what = f"the manifest {first - 1}, {place.store.uri(path)}, is missing, which no reader needs"
        yield scene.advice(what, "nothing needs to be done", path, DiagnosisCause.MISSING)


def _unread_older(scene: ShardScene, versions: list[int]) -> Iterator[Finding]:
    """Find manifests that cannot be read, or belong to another shard. No reader needs them."""

    def error_of(version: int) -> tuple[int, Exception | None]:
        try:
            read_version(scene.place, version)
        except MissingFileError:  # was removed since the listing
            return version, None
        except (LanceError, OSError) as error:
            return version, error
        return version, None

    for version, error in stream(error_of, versions, ahead=_AHEAD, pool=storage_pool, join=True):
        if error is not None:
            what = f"an older manifest, which no reader needs, cannot be read: {error}"
            remedy = "nothing needs to be done, as a collection removes it some time"
            yield scene.advice(what, remedy, scene.place.manifest(version), DiagnosisCause.CORRUPT)
