"""Search for the versions whose data files hold the rows to erase, whether these are deleted or not."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import FieldNotFoundError, FilterError, MissingFileError
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.properties import cached_property
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import Projection, full_schema
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.scan import ScanRequest, matching_by_fragment
from lance_dataset.table.cleanup.file_usage import detached_versions
from lance_dataset.table.manifest import Manifest, read_manifest
from lance_dataset.table.naming import Naming, named_path
from lance_dataset.table.versions import list_versions, read_named

__all__ = ["Holding", "Matcher", "Matches", "versions_with_rows"]

Matches: TypeAlias = "list[tuple[FragmentReader, NDArray[np.int64]]]"


@dataclass(frozen=True)
class Holding:
    """Versions of a branch, by whether their data files hold the rows.

    Attributes
    ----------
    with_rows
        Versions that hold the rows, perhaps as deleted ones.
    unknown
        Versions without a column of the condition.
    others
        All other versions.
    """

    with_rows: frozenset[int]
    unknown: frozenset[int]
    others: frozenset[int]

    @cached_property
    def versions(self) -> list[int]:
        """All versions in ascending order."""
        return sorted(self.with_rows | self.unknown | self.others)


class Matcher:
    """Finds rows in the data files of versions. Files that versions share are read once.

    Parameters
    ----------
    where
        SQL text or a pyarrow expression that is true for the rows to find.
    """

    def __init__(self, where: str | pc.Expression) -> None:
        self._where = where
        self._known: dict[Hashable, NDArray[np.int64]] = {}

    def find(self, snapshot: Snapshot) -> Matches:
        """Return the fragments that hold such rows, and the physical offsets of these, deleted ones included.

        Raises
        ------
        FilterError, FieldNotFoundError
            The condition does not fit the schema of the version.
        TypeError
            The condition is None.
        """
        schema = snapshot.scanned_schema
        predicate = compile_filter(self._where, full_schema(schema))
        if predicate is None:
            raise TypeError("purge needs a condition; 'true' erases all rows")
        columns = tuple((node.id, node.name, node.logical_type) for node in snapshot.manifest.schema.walk())
        readers = list(snapshot.reader.fragments)
        keys = [(columns, self._key(snapshot, reader)) for reader in readers]
        new = tuple(position for position, key in enumerate(keys) if key not in self._known)
        if new:
            request = ScanRequest(
                schema,
                Projection((), full_schema(schema)),
                filter=predicate,
                fragments=new,
                include_deleted=True,
                use_statistics=False,
            )
            found = {reader.fragment.id: rows for reader, rows in matching_by_fragment(snapshot.reader, request)}
            for position in new:
                rows = found.get(readers[position].fragment.id, np.empty(0, np.int64))
                self._known[keys[position]] = np.sort(rows)
        hits = ((reader, self._known[key]) for reader, key in zip(readers, keys, strict=True))
        return [(reader, rows) for reader, rows in hits if len(rows)]

    def _key(self, snapshot: Snapshot, reader: FragmentReader) -> Hashable:
        """Return what determines the rows of a fragment: its files, and the columns that they hold."""
        locator = snapshot.location.locator(snapshot.manifest)
        places = ((*locator.data_file(file), file.fields) for file in reader.fragment.files)
        return tuple((store.uri(path), fields) for store, path, fields in places), repr(reader.fragment.overlays)


def versions_with_rows(snapshot: Snapshot, matcher: Matcher) -> Holding:
    """Search all versions of the branch of a snapshot, detached ones included."""
    found: dict[bool | None, set[int]] = {True: set(), False: set(), None: set()}
    for manifest in _manifests(snapshot):
        answer: bool | None
        try:
            answer = bool(matcher.find(Snapshot.of(snapshot.location, manifest)))
        except (FieldNotFoundError, FilterError):
            answer = None
        found[answer].add(manifest.version)
    return Holding(frozenset(found[True]), frozenset(found[None]), frozenset(found[False]))


def _manifests(snapshot: Snapshot) -> Iterator[Manifest]:
    store, root = snapshot.store, snapshot.root
    names: Sequence = [*list_versions(store, root), *detached_versions(store, root)]
    for name in names:
        try:
            if name.naming is Naming.DETACHED:
                yield read_manifest(store, named_path(root, name))
            else:
                yield read_named(store, root, name)
        except MissingFileError:  # removed by a cleanup in the meantime
            continue
