"""The log of a shard: appends without gaps that never overwrite, and reads in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pyarrow as pa

from lance_dataset.errors import AlreadyExistsError, CommitConflictError, LanceError, MissingFileError
from lance_dataset.memwal.log_entries import LogEntry, decode_entry, encode_sentinel
from lance_dataset.memwal.places import ShardPlace, number_of
from lance_dataset.memwal.shard_manifest import ShardManifest
from lance_dataset.memwal.shard_versions import check_owner

__all__ = ["ShardLog", "log_end", "read_entries"]

_log = logging.getLogger(__name__)
_RETRIES = 3
_FIRST_DELAY, _MAX_DELAY = 0.05, 5.0
#: Positions that other writers may take before an append gives up.
_MAX_CONFLICTS = 1024


class ShardLog:
    """End of the log of a shard that a writer owns. Calls must not overlap.

    Parameters
    ----------
    place
        The shard.
    epoch
        Epoch of the writer.
    position
        Position of the next entry.
    """

    def __init__(self, place: ShardPlace, epoch: int, position: int) -> None:
        self.place = place
        self.epoch = epoch
        self.position = position

    def append(self, data: pa.Buffer) -> int:
        """Write an entry at the end; it is durable on return.

        Returns
        -------
        int
            Its position.

        Raises
        ------
        CommitConflictError
            Another writer owns the shard.
        LanceError, OSError
            The store fails repeatedly. Whether the entry exists is not known.
        """
        content = memoryview(data)
        for _ in range(_MAX_CONFLICTS):
            position = self.position
            if self._created(position, bytes(content)):
                self.position = position + 1
                return position
            check_owner(self.place, self.epoch)
            self.position = position + 1
        raise CommitConflictError(
            f"shard {self.place.shard_id}: {_MAX_CONFLICTS} entries of others are in the way", retryable=True
        )

    def fence(self) -> int:
        """Write an entry without rows, which stops earlier writers of the shard. Return its position."""
        return self.append(encode_sentinel(self.epoch))

    def _created(self, position: int, data: bytes) -> bool:
        """Write an entry. Return False if another one is there."""
        path, delay = self.place.entry(position), _FIRST_DELAY
        for attempt in range(_RETRIES + 1):
            try:
                self.place.store.put_if_absent(path, data)
                return True
            except AlreadyExistsError:
                # The answer to an earlier request may have been lost.
                return self.place.store.read(path) == data
            except (LanceError, OSError) as error:
                if attempt == _RETRIES:
                    raise
                _log.warning("entry %d of shard %s: %s; trying again", position, self.place.shard_id, error)
                time.sleep(delay)
                delay = min(delay * 2, _MAX_DELAY)
        return False


def log_end(place: ShardPlace, manifest: ShardManifest) -> int:
    """Return the position behind the last entry of a log."""
    numbers = (number_of(name, ".arrow") for name in place.store.list_names(place.log))
    last = max((number for number in numbers if number is not None), default=0)
    return max(last, manifest.replay_after, manifest.last_seen) + 1


def read_entries(place: ShardPlace, start: int) -> Iterator[tuple[int, LogEntry]]:
    """Yield the entries of a log from a position to the first gap, with their positions.

    Raises
    ------
    CorruptFileError, UnsupportedError
        An entry cannot be read.
    """
    position = start
    while True:
        path = place.entry(position)
        try:
            data = place.store.read(path)
        except MissingFileError:
            return
        yield position, decode_entry(data, place.store.uri(path))
        position += 1
