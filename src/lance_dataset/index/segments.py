"""Segments of the indices of a version, with the fragments that they cover now."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_dataset.errors import IndexNotFoundError, nearest_name_hint
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.kinds import known_kind
from lance_dataset.properties import cached_property
from lance_dataset.read.table_reader import TableReader
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import coverage, is_system_index, parse_indices
from lance_dataset.table.indices.system import with_current_coverage

__all__ = ["Segment", "index_segments", "segments_named"]


@dataclass(frozen=True)
class Segment:
    """One segment of an index, in one version.

    Attributes
    ----------
    reader
        Reader of the version.
    metadata
        What the manifest says of it.
    kind
        Its kind, a key of `KINDS`; None if an old release did not record it.
    """

    reader: TableReader
    metadata: IndexMetadata
    kind: str | None

    @property
    def name(self) -> str:
        """Name of its index."""
        return self.metadata.name

    @property
    def is_system(self) -> bool:
        """True if the index is internal to the table."""
        return is_system_index(self.metadata)

    @cached_property
    def recorded(self) -> frozenset[int]:
        """Fragments that it covers, also those that do not exist any more."""
        return coverage(self.metadata) or frozenset()

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """Existing fragments that it covers."""
        known = self.reader.manifest.fragment_list.columns.ids.tolist()
        return self.recorded & frozenset(known)

    @cached_property
    def num_rows(self) -> int:
        """Number of live rows of the fragments that it covers."""
        found = map(self.reader.fragment, self.fragment_ids)
        return sum(fragment.num_rows for fragment in found if fragment is not None)

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """Full names of the columns that it is of."""
        names = dict(self.reader.manifest.schema.paths_by_id())
        return tuple(names[each] for each in self.metadata.fields if each in names)

    @property
    def is_of_vectors(self) -> bool:
        """True if its column holds vectors."""
        schema = self.reader.manifest.schema
        kinds = [field.storage_type for each in self.metadata.fields if (field := schema.by_id.get(each)) is not None]
        return any(map(pa.types.is_fixed_size_list, kinds))

    @cached_property
    def folder(self) -> IndexFolder:
        """Folder of its files."""
        store, path = self.reader.locator.index_folder(self.metadata.uuid, self.metadata.base_id)
        return IndexFolder(store, path, {file.path: file.size_bytes for file in self.metadata.files})


def index_segments(reader: TableReader) -> list[Segment]:
    """Return the segments of all indices that this release knows, in the order of the manifest.

    Those of unknown kinds and of later format versions are left out, as in the reference: no query uses them.

    Parameters
    ----------
    reader
        Reader of the version.

    Raises
    ------
    CorruptFileError
        The list of indices cannot be read.
    """
    manifest = reader.manifest
    section = with_current_coverage(manifest.index_section, reader.locator)
    found = [IndexMetadata.from_proto(index, manifest.path) for index in parse_indices(section)]
    segments = [Segment(reader, metadata, known_kind(metadata)) for metadata in found]
    return [segment for segment in segments if segment.kind is not None or segment.metadata.details is None]


def segments_named(reader: TableReader, name: str) -> list[Segment]:
    """Return the segments of one index, in the order of the manifest.

    Raises
    ------
    TypeError
        The name is not text.
    IndexNotFoundError
        There is no such index.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of an index must be text, not {type(name).__name__}")
    segments = index_segments(reader)
    found = [segment for segment in segments if segment.name == name]
    if not found:
        hint = nearest_name_hint(name, dict.fromkeys(segment.name for segment in segments))
        raise IndexNotFoundError(f'Index "{name}" not found{hint}')
    return found
