"""Look at the log of a shard: entries that are in no SSTable must all be there, decode, and be replayed."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lance_dataset.errors import LanceError, UnsupportedError
from lance_dataset.memwal.examining.scene import RESTORE, ShardScene
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.log_entries import LogEntry, decode_entry
from lance_dataset.memwal.opening import log_rows, replayed
from lance_dataset.memwal.places import ShardPlace, number_of
from lance_dataset.memwal.schemas import check_columns, sstable_schema
from lance_dataset.memwal.shard_manifest import ShardManifest
from lance_dataset.records.diagnosis import DiagnosisCause, Finding

__all__ = ["look_at_log"]

_GIVE_UP = f"{RESTORE}, or remove this entry and all later ones to give up their rows"


def look_at_log(scene: ShardScene, shard: ShardManifest, key: KeyColumns) -> Iterator[Finding]:
    """Find damage of the entries that the next writer replays. Entries before them are not read.

    Parameters
    ----------
    scene
        The shard.
    shard
        Its newest manifest.
    key
        Key of the table.
    """
    place = scene.place
    sizes = _sizes(place)
    if sizes and len(sizes) <= max(sizes) - min(sizes):
        sizes = _sizes(place)  # entries that were appended during the listing may have been left out
    yield from _gaps(scene, shard, list(sizes))
    replay = _Replay(scene, shard, key)
    for position, size in sizes.items():
        if position <= shard.replay_after:
            continue
        path = place.entry(position)
        try:
            data = place.store.read(path)
            entry = decode_entry(data, place.store.uri(path))
        except (LanceError, OSError) as error:
            yield scene.unread(error, path, _GIVE_UP, size)
            continue
        yield from replay.check(position, entry)


def _sizes(place: ShardPlace) -> dict[int, int]:
    """Return the sizes of all entries by position, in order."""
    found = ((number_of(info.name, ".arrow"), info.size) for info in place.store.list(place.log))
    return dict(sorted((number, size) for number, size in found if number))


def _gaps(scene: ShardScene, shard: ShardManifest, positions: list[int]) -> Iterator[Finding]:
    """Find positions without an entry: before others, behind which nothing is replayed, and at the end."""
    place, expected = scene.place, shard.replay_after + 1
    for position in positions:
        if position > expected:
            path = place.entry(expected)
            what = (
                f"the log has a gap: {_named(expected, position)} missing ({place.store.uri(path)}), but there are "
                "later ones, whose rows no writer replays"
            )
            remedy = f"{RESTORE}, or remove the later entries to give up their rows"
            yield scene.damage(what, remedy, DiagnosisCause.MISSING, path)
        expected = max(expected, position + 1)
    end, last = max(shard.last_seen, shard.replay_after), positions[-1] if positions else 0
    if last < end:
        path = place.entry(end)
        lost = "its rows are lost" if end > shard.replay_after else "another library may use its number again"
        what = f"the last entry of the log that the manifest knows, {end}, is missing ({place.store.uri(path)}): {lost}"
        yield scene.damage(what, RESTORE, DiagnosisCause.MISSING, path)


def _named(start: int, stop: int) -> str:
    return f"entry {start} is" if stop == start + 1 else f"entries {start} to {stop - 1} are"


class _Replay:
    """Check that a writer can replay entries, which come in order."""

    def __init__(self, scene: ShardScene, shard: ShardManifest, key: KeyColumns) -> None:
        manifest = scene.snapshot.manifest
        self._scene, self._shard, self._key = scene, shard, key
        self._schema = manifest.schema
        self._rows: pa.Schema | None = None
        self._generation, self._has_rows = shard.generation, False
        try:
            check_columns(manifest.schema)
        except LanceError:
            return  # no writer of this release can replay the rows, but others can
        self._rows = sstable_schema(manifest.schema, key, manifest.max_field_id).storage_arrow

    def check(self, position: int, entry: LogEntry) -> Iterator[Finding]:
        """Find what keeps a writer from replaying an entry."""
        path = self._scene.place.entry(position)
        where = self._scene.place.store.uri(path)
        if entry.epoch > self._shard.writer_epoch:
            what = f"{where} is of epoch {entry.epoch}, but the newest manifest of {self._shard.writer_epoch}"
            remedy = "put copies of the newest manifests of the shard back, which must be missing"
            yield self._scene.damage(what, remedy, DiagnosisCause.CORRUPT, path)
        if entry.is_sentinel or not entry.batches:
            return
        if not self._has_rows and not replayed(entry, self._shard.generation):
            return
        yield from self._order(entry, path)
        if self._rows is None:
            return
        try:
            for batch in entry.batches:
                log_rows(batch, self._schema, self._key, self._rows, where)
        except UnsupportedError as error:
            yield self._scene.unread(error, path, "see there; until then, no writer of the shard can be opened")
        except LanceError as error:
            yield self._scene.unread(error, path, _GIVE_UP)

    def _order(self, entry: LogEntry, path: str) -> Iterator[Finding]:
        wanted, known = entry.generation, self._generation
        if wanted is not None and wanted != known and not (wanted == known + 1 and self._has_rows):
            what = (
                f"{self._scene.place.store.uri(path)} has rows of generation {wanted}, where those of {known} are "
                "expected: entries or manifests are missing or in another order"
            )
            yield self._scene.damage(what, _GIVE_UP, DiagnosisCause.CORRUPT, path)
        self._generation, self._has_rows = max(known, wanted or 0), True
