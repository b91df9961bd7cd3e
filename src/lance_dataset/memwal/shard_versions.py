"""The newest manifest of a shard, and its successors: claims, and what an owner publishes."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptFileError,
    InvalidInputError,
    LanceError,
    MissingFileError,
)
from lance_dataset.memwal.places import ShardPlace, number_of
from lance_dataset.memwal.shard_manifest import (
    ShardManifest,
    claiming_bytes,
    decode_shard_manifest,
    encode_shard_manifest,
)

__all__ = [
    "KEPT_MANIFESTS",
    "check_owner",
    "claim_shard",
    "fenced_error",
    "hinted_version",
    "manifest_versions",
    "newest_version",
    "read_shard",
    "read_version",
    "update_shard",
]

_log = logging.getLogger(__name__)
_ATTEMPTS = 16
#: Newest manifests that stay, whatever their age: a writer that was held up finds the one that it read.
KEPT_MANIFESTS = 64


def read_shard(place: ShardPlace) -> ShardManifest | None:
    """Read the newest manifest of a shard; None if the shard does not exist.

    Raises
    ------
    CorruptFileError, UnsupportedError
        The manifest cannot be read.
    CommitConflictError
        Manifests were removed while they were read, again and again.
    """
    for _ in range(_ATTEMPTS):
        version = newest_version(place)
        if version is None:
            return None
        try:
            return read_version(place, version)
        except MissingFileError:  # others published newer ones, and this one was removed
            continue
    raise CommitConflictError(f"shard {place.shard_id}: manifests are removed again and again", retryable=True)


def read_version(place: ShardPlace, version: int) -> ShardManifest:
    """Read a manifest of a shard.

    Raises
    ------
    MissingFileError
        It does not exist.
    CorruptFileError, UnsupportedError
        It cannot be read, or belongs elsewhere.
    """
    path = place.manifest(version)
    manifest = decode_shard_manifest(place.store.read(path), place.store.uri(path))
    if manifest.version != version:
        raise CorruptFileError(f"{place.store.uri(path)}: is version {version} by its name, {manifest.version} inside")
    if manifest.shard_id != place.shard_id:
        raise CorruptFileError(f"{place.store.uri(path)}: belongs to shard {manifest.shard_id}")
    return manifest


def newest_version(place: ShardPlace) -> int | None:
    """Return the number of the newest manifest, as readers find it; None if there is none."""
    version = hinted_version(place)
    if version is None or not _is_of_the_chain(place, version):
        known = manifest_versions(place)
        if not known:
            return None
        version = known[-1]
    while place.store.exists(place.manifest(version + 1)):
        version += 1
    return version


def _is_of_the_chain(place: ShardPlace, version: int) -> bool:
    """Return True if a manifest and its predecessor exist.

    A writer that does not check the predecessor, and was held up, may take the number of a manifest that was removed
    and name it in the hint.
    """
    return all(place.store.exists(place.manifest(each)) for each in range(max(version - 1, 1), version + 1))


def manifest_versions(place: ShardPlace) -> list[int]:
    """Return the numbers of the manifests of a shard, in order."""
    numbers = {number_of(name, ".binpb") for name in place.store.list_names(place.manifests)}
    return sorted(number for number in numbers if number is not None)


def hinted_version(place: ShardPlace) -> int | None:
    """Return the number of a recent manifest that the hint names, None if it names none."""
    try:
        hint = json.loads(place.store.read(place.hint))
    except (MissingFileError, ValueError, RecursionError):
        return None
    version = hint.get("version") if isinstance(hint, dict) else None
    return version if isinstance(version, int) and 0 < version < 1 << 63 else None


def _create(place: ShardPlace, manifest: ShardManifest, data: bytes) -> None:
    """Write the next manifest. Raise AlreadyExistsError if another one has its number."""
    path = place.manifest(manifest.version)
    try:
        place.store.put_if_absent(path, data)
    except AlreadyExistsError:
        if place.store.read(path) != data:  # the answer to an earlier request may have been lost
            raise
    _check_chain(place, manifest.version)
    with suppress(LanceError, OSError):
        place.store.put_hint(place.hint, b'{"version":%d}' % manifest.version)


def _check_chain(place: ShardPlace, version: int) -> None:
    """Check that a new manifest does not take the number of one that was removed.

    Manifests are removed in order. So while its predecessor exists, no manifest had the number before.
    """
    if version > 1 and place.store.exists(place.manifest(version - 1)):
        return
    known = manifest_versions(place)
    if version == 1 and known[-1:] <= [KEPT_MANIFESTS]:
        return
    if version + 1 not in known and known and known[-1] > version:
        place.store.delete(place.manifest(version))
    raise CommitConflictError(
        f"shard {place.shard_id}: other writers published many manifests since version {version - 1}; "
        "open a new writer",
        retryable=False,
    )


def fenced_error(place: ShardPlace, epoch: int, stored: int) -> CommitConflictError:
    """Return the error of a writer whose shard another one has claimed."""
    return CommitConflictError(
        f"Writer fenced (peer claimed epoch): shard {place.shard_id}: local epoch {epoch} < stored epoch {stored}; "
        "another writer owns the shard now, open a new writer to take it back",
        retryable=False,
    )


def check_owner(place: ShardPlace, epoch: int) -> ShardManifest:
    """Return the newest manifest of a shard that a writer has claimed.

    Raises
    ------
    CommitConflictError
        Another writer has claimed the shard since.
    CorruptFileError
        The shard has gone.
    """
    manifest = read_shard(place)
    if manifest is None:
        raise CorruptFileError(f"shard {place.shard_id} of {place.store.uri(place.table)} has no manifest any more")
    if manifest.writer_epoch > epoch:
        raise fenced_error(place, epoch, manifest.writer_epoch)
    return manifest


def update_shard(
    place: ShardPlace, epoch: int | None, change: Callable[[ShardManifest], ShardManifest]
) -> ShardManifest:
    """Publish the next manifest of a shard.

    Parameters
    ----------
    place
        The shard.
    epoch
        Epoch of the owner; None for changes that anyone may make.
    change
        Returns the new state, from the newest one. Called again if another writer publishes a manifest first.

    Returns
    -------
    ShardManifest
        The new state. It is durable.

    Raises
    ------
    CommitConflictError
        Another writer owns the shard, or every attempt lost.
    """
    for _ in range(_ATTEMPTS):
        known = read_shard(place) if epoch is None else check_owner(place, epoch)
        if known is None:
            raise InvalidInputError(f"shard {place.shard_id} of {place.store.uri(place.table)} does not exist")
        made = change(known)
        if made == known:
            return known
        made = replace(made, version=known.version + 1)
        try:
            _create(place, made, encode_shard_manifest(made))
        except AlreadyExistsError:
            if read_version(place, made.version) != made:
                continue
        return made
    raise CommitConflictError(
        f"shard {place.shard_id}: other writers published {_ATTEMPTS} manifests meanwhile", retryable=True
    )


def claim_shard(place: ShardPlace, spec_id: int) -> ShardManifest:
    """Become the owner of a shard, which is created if it does not exist.

    Raises
    ------
    InvalidInputError
        The shard is sealed.
    CommitConflictError
        Another writer claimed the shard at the same time.
    """
    known = read_shard(place)
    target = 1 if known is None else known.writer_epoch + 1
    for _ in range(_ATTEMPTS):
        if known is not None and known.sealed:
            raise InvalidInputError(f"shard {place.shard_id} is sealed; refusing claim")
        if known is not None and known.writer_epoch >= target:
            raise fenced_error(place, target, known.writer_epoch)
        start = known or ShardManifest(place.shard_id, spec_id=spec_id)
        made = replace(start, version=start.version + 1, writer_epoch=target)
        try:
            _create(place, made, claiming_bytes(made))
        except AlreadyExistsError:
            known = read_shard(place)
            continue
        return made
    raise CommitConflictError(
        f"shard {place.shard_id}: other writers published {_ATTEMPTS} manifests meanwhile", retryable=True
    )
