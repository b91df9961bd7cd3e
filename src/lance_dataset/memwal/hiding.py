"""Rows of the table that newer rows of shards hide: found once for a version and its SSTables, then left out."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.memwal.key_set import KeySet
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.memtable import Memtable
from lance_dataset.memwal.sources import LsmSources
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.located import LocatedRows, map_located_rows
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.resolving import indices_for_scans, resolve_request

__all__ = ["hidden_addresses", "shard_keys", "visible_base"]

#: Rows of the table whose keys are looked up together.
_ROWS = 1 << 16
#: Rows whose keys are looked up in the time in which an index finds one key.
_ROWS_PER_LOOKUP = 2000

_Addresses = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class _Hidden:
    """Rows of a version of the table that some SSTables hide. They are kept as long as the reader of the version.

    Attributes
    ----------
    key
        Columns by which rows are compared.
    tables
        The SSTables.
    addresses
        Addresses of the rows, ascending.
    readers
        The reader of the version without these rows, once it is asked for. A snapshot would keep the session of the
        table, which keeps this object.
    """

    key: KeyColumns
    tables: frozenset[str] = frozenset()
    addresses: _Addresses = field(default_factory=lambda: np.empty(0, np.uint64))
    readers: list[TableReader] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Size of the addresses."""
        return self.addresses.nbytes


@dataclass(frozen=True, eq=False)
class _Seen:
    """Rows of a version of the table that the first batches of a memtable hide.

    Attributes
    ----------
    first
        The first batch, by which the memtable is known again. It is not kept for this.
    batches
        Number of batches.
    addresses
        Addresses of the rows, ascending.
    """

    first: weakref.ref[pa.RecordBatch]
    batches: int
    addresses: _Addresses


@dataclass(frozen=True, eq=False)
class _Recent:
    """Rows of a version of the table that memtables and SSTables hid the last time.

    Attributes
    ----------
    sstables
        What the SSTables hid.
    memtables
        What each memtable hid.
    hidden
        What all of them hid.
    """

    sstables: _Hidden
    memtables: tuple[_Seen, ...]
    hidden: _Hidden


def shard_keys(sources: LsmSources) -> KeySet:
    """Return the keys of all rows of memtables and SSTables."""
    memtables = [sources.key.array(memtable.newest()) for memtable in sources.memtables if not memtable.is_empty]
    return KeySet([*memtables, *(table.keys for shard in sources.shards for table in shard)])


def hidden_addresses(sources: LsmSources) -> NDArray[np.uint64]:
    """Return the addresses of the rows of the table that newer rows hide, ascending.

    Raises
    ------
    CorruptFileError, MissingFileError
        A source cannot be read.
    """
    return _of_all(sources).addresses


def visible_base(sources: LsmSources) -> Snapshot:
    """Return the table without the rows that newer rows hide; raises like `hidden_addresses`."""
    hidden = _of_all(sources)
    if not len(hidden.addresses):
        return sources.base
    if not hidden.readers:
        hidden.readers.append(sources.base.reader.without(hidden.addresses))
    reader = hidden.readers[0]
    return replace(sources.base, manifest=reader.manifest, reader=reader)


def _of_all(sources: LsmSources) -> _Hidden:
    """Return what memtables and SSTables hide. Only batches of memtables that are new are looked at."""
    below = _of_sstables(sources)
    memtables = [memtable for memtable in sources.memtables if not memtable.is_empty]
    if not memtables:
        return below
    companions = sources.base.reader.companions
    known = companions.get(_Recent)
    if not isinstance(known, _Recent) or known.hidden.key != sources.key:
        known = _Recent(below, (), below)
    seen = tuple(_of_memtable(sources, memtable, known.memtables) for memtable in memtables)
    parts = [below.addresses, *(each.addresses for each in seen)]
    before = [known.sstables.addresses, *(each.addresses for each in known.memtables)]
    if len(parts) == len(before) and all(map(operator.is_, parts, before)):
        hidden = known.hidden
    else:
        hidden = _Hidden(sources.key, frozenset(), _united(parts))
    companions[_Recent] = _Recent(below, seen, hidden)
    return hidden


def _of_memtable(sources: LsmSources, memtable: Memtable, known: Sequence[_Seen]) -> _Seen:
    batches = memtable.batches_from(0)
    seen = next((each for each in known if each.first() is batches[0]), None)
    if seen is None or seen.batches > len(batches):
        seen = _Seen(weakref.ref(batches[0]), 0, np.empty(0, np.uint64))
    if seen.batches == len(batches):
        return seen
    found = _found(sources.base, sources.key, [sources.key.array(batch) for batch in batches[seen.batches :]])
    addresses = _united([seen.addresses, found]) if len(found) else seen.addresses
    return _Seen(seen.first, len(batches), addresses)


def _united(parts: Sequence[_Addresses]) -> _Addresses:
    """Return the addresses of several parts, each of which is ascending, in order and each once."""
    every = np.sort(np.concatenate(parts), kind="stable")  # merges the parts
    return every[np.concatenate([[True], every[1:] != every[:-1]])] if len(every) else every


def _of_sstables(sources: LsmSources) -> _Hidden:
    """Return what SSTables hide. Only those that are new since the last time are looked at."""
    companions = sources.base.reader.companions
    tables = {table.snapshot.uri: table for shard in sources.shards for table in shard}
    known = companions.get(_Hidden)
    if not isinstance(known, _Hidden) or known.key != sources.key or not known.tables <= tables.keys():
        known = _Hidden(sources.key)
    more = [table.keys for uri, table in tables.items() if uri not in known.tables]
    if more:
        addresses = _united([known.addresses, _found(sources.base, sources.key, more)])
        known = companions[_Hidden] = _Hidden(sources.key, frozenset(tables), addresses)
    return known


def _found(base: Snapshot, key: KeyColumns, parts: Sequence[pa.Array]) -> _Addresses:
    """Return the addresses of the rows of the table with some keys."""
    wanted = KeySet(parts)
    if not wanted:
        return np.empty(0, np.uint64)

    def work(rows: LocatedRows) -> _Addresses:
        if not rows.num_rows:
            return np.empty(0, np.uint64)
        return rows.addresses(wanted.places(key.array(rows.read())))

    request = _scan_of(base, key, wanted)
    return np.concatenate([np.empty(0, np.uint64), *map_located_rows(base.reader, request, work, most_rows=_ROWS)])


def _scan_of(base: Snapshot, key: KeyColumns, wanted: KeySet) -> ScanRequest:
    """Return a scan of the keys of the rows that may have some keys: all, or those that an index of the key finds."""
    request = resolve_request(base, {"columns": list(key.names)})
    keys = wanted.keys
    few = keys is not None and not keys.null_count and len(keys) * _ROWS_PER_LOOKUP < base.reader.num_rows
    if not few or len(key.names) > 1 or not base.manifest.index_section:
        return request
    # Imported here, so that only tables with indices load it.
    from lance_dataset.scan.indexed.keys import restricted_to_keys

    request = replace(request, indices=indices_for_scans(base))
    return restricted_to_keys(base.reader, request, {key.names[0]: pa.chunked_array([keys])})
