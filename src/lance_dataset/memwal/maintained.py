"""Indices of SSTables: counterparts of those of the table, for searches of other programs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lance_dataset.changes.indexing.segments import IndexDefinition, indexed_field, new_id, new_segment
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.training import TRAINERS
from lance_dataset.index.vector.graph import GraphParameters
from lance_dataset.index.vector.searching.open_indices import vector_indices
from lance_dataset.index.vector.training.parameters import VectorParameters
from lance_dataset.index.vector.training.trainer import vector_trainer
from lance_dataset.memwal.details import MemWalDetails
from lance_dataset.read.location import TableLocation
from lance_dataset.read.session import Session
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.indices.coverage import encode_indices
from lance_dataset.table.manifest import Manifest

__all__ = ["SsTableIndices", "check_maintained", "sstable_indices"]

_log = logging.getLogger(__name__)
#: Kinds of indices that SSTables have.
_KINDS = ("btree", "inverted", "vector")


@dataclass(frozen=True)
class SsTableIndices:
    """Indices that the SSTables of a writer get.

    Attributes
    ----------
    location
        Location of the table.
    definitions
        Definitions of the indices.
    """

    location: TableLocation
    definitions: tuple[IndexDefinition, ...]

    def write(self, root: str, manifest: Manifest) -> Manifest:
        """Write the indices of an SSTable, and return its manifest with them.

        Parameters
        ----------
        root
            Folder of the SSTable.
        manifest
            Its manifest, which is not published yet; its data files exist.
        """
        if not self.definitions:
            return manifest
        place = self.location
        store = place.store.for_table(root, place.store.trusted_bases)
        there = replace(place, uri=store.uri(root), root=root, store=store, session=Session())
        snapshot = Snapshot.of(there, manifest)
        made = []
        for definition in self.definitions:
            segment = new_segment(snapshot, definition, new_id(), fragment_ids=[0])
            if segment.files:
                made.append(segment.to_proto())
        return replace(manifest, index_section=encode_indices(made))


def check_maintained(snapshot: Snapshot, details: MemWalDetails) -> None:
    """Raise InvalidInputError if SSTables cannot have an index that a MemWAL is to maintain."""
    for segment in _first_segments(snapshot).values():
        if segment.name in details.maintained_indexes and segment.kind not in _KINDS:
            raise InvalidInputError(
                f"Invalid user input: index {segment.name!r} of the kind {segment.kind!r} cannot be maintained by a "
                "MemWAL; leave it out"
            )


def sstable_indices(
    snapshot: Snapshot, details: MemWalDetails, hnsw: Mapping[str, Mapping[str, int]]
) -> SsTableIndices:
    """Return the indices that a MemWAL maintains.

    Parameters
    ----------
    snapshot
        The table.
    details
        Settings of the MemWAL.
    hnsw
        Parameters of the graphs of vector indices, by the name of the index.
    """
    found = []
    for name, segment in _first_segments(snapshot).items():
        if not details.maintain_all_indexes and name not in details.maintained_indexes:
            continue
        if segment.kind not in _KINDS or len(segment.column_names) != 1:
            continue
        try:
            found.append(_definition(snapshot, segment, hnsw.get(name, {})))
        except UnsupportedError as error:
            _log.warning("SSTables get no counterpart of index %r: %s", name, error)
    return SsTableIndices(snapshot.location, tuple(found))


def _first_segments(snapshot: Snapshot) -> dict[str, Segment]:
    found: dict[str, Segment] = {}
    if snapshot.manifest.index_section:
        for segment in index_segments(snapshot.reader):
            if not segment.is_system:
                found.setdefault(segment.name, segment)
    return found


def _definition(snapshot: Snapshot, segment: Segment, hnsw: Mapping[str, int]) -> IndexDefinition:
    path = indexed_field(snapshot.scanned_schema, segment.column_names[0])
    if segment.kind == "vector":
        metric = _metric(snapshot, segment)
        usual = GraphParameters()
        graph = GraphParameters(
            hnsw.get("num_edges", usual.neighbors),
            hnsw.get("ef_construction", usual.candidates),
            hnsw.get("max_level", usual.levels),
        )
        parameters = VectorParameters("IVF_HNSW_FLAT", metric, partitions=1, graph=graph)
        return IndexDefinition(segment.name, path, vector_trainer(parameters), {})
    details = segment.metadata.details
    trainer, chosen = TRAINERS[str(segment.kind)].of_index(b"" if details is None else details.value, segment.folder)
    return IndexDefinition(segment.name, path, trainer, chosen)


def _metric(snapshot: Snapshot, segment: Segment) -> str:
    opened = vector_indices(snapshot.reader)
    known = () if opened is None else opened.by_field.get(segment.metadata.fields[0], ())
    for index in known:
        if index.name == segment.name and index.refusal is None:
            return index.metric
    raise UnsupportedError("its metric cannot be read, or it covers no rows")
