"""Operations of a transaction: one class for each kind of operation in the format."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.index_metadata import IndexDetails, IndexFile, IndexMetadata
from lance_dataset.table.manifest import BasePath
from lance_dataset.types.schema import Schema

__all__ = [
    "Append",
    "Clone",
    "CompactedSsTable",
    "CreateIndex",
    "DataOverlay",
    "DataReplacement",
    "Delete",
    "KeyFilter",
    "Merge",
    "Operation",
    "Overwrite",
    "Project",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "RewriteGroup",
    "RewrittenIndex",
    "Unknown",
    "Update",
    "UpdateBases",
    "UpdateConfig",
    "UpdateMap",
    "UpdateMemWalState",
    "UpdateMode",
]


@dataclass(frozen=True)
class Append:
    """Adds new fragments after the existing ones.

    Attributes
    ----------
    fragments
        New fragments. The commit assigns ids to those with id 0.
    """

    fragments: tuple[Fragment, ...]

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Append"


@dataclass(frozen=True)
class Delete:
    """Deletes rows, and drops fragments without live rows.

    Attributes
    ----------
    updated_fragments
        Fragments with their new deletion file.
    deleted_fragment_ids
        Fragments to remove.
    predicate
        Deleted rows as SQL text, for information.
    """

    updated_fragments: tuple[Fragment, ...] = ()
    deleted_fragment_ids: tuple[int, ...] = ()
    predicate: str = ""

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Delete"


@dataclass(frozen=True)
class Overwrite:
    """Replaces all content by a new schema and new fragments. Also creates tables.

    Attributes
    ----------
    schema
        The new schema, with field ids.
    fragments
        All fragments.
    config_upserts
        Settings to add to the config.
    initial_bases
        Base paths of a new table.
    storage_version
        File version of the table if it has no new files to take it from. By default it is unchanged. Not part of the
        stored transaction.
    """

    schema: Schema
    fragments: tuple[Fragment, ...] = ()
    config_upserts: Mapping[str, str] = field(default_factory=dict)
    initial_bases: tuple[BasePath, ...] = ()
    storage_version: str | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Overwrite"


@dataclass(frozen=True)
class Restore:
    """Restores the content of an older version.

    Attributes
    ----------
    version
        The older version.
    """

    version: int

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Restore"


@dataclass(frozen=True)
class RewriteGroup:
    """Fragments, and their replacements with the same live rows in the same order.

    Attributes
    ----------
    old_fragments
        Fragments to remove.
    new_fragments
        Fragments that replace them. The commit assigns ids to those with id 0.
    """

    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]


@dataclass(frozen=True)
class RewrittenIndex:
    """An index that replaces another one, for rewritten fragments.

    Attributes
    ----------
    old_id, new_id
        UUIDs of the index before and after.
    details
        Description of the new index, by the URL of its type.
    index_version
        Version of its format.
    files
        Its files.
    """

    old_id: str
    new_id: str
    details: IndexDetails | None = None
    index_version: int = 0
    files: tuple[IndexFile, ...] = ()


@dataclass(frozen=True)
class Rewrite:
    """Replaces fragments by others with the same rows (compaction).

    Attributes
    ----------
    groups
        Old fragments and their replacements.
    rewritten_indices
        Indices that were adapted to the new fragments.
    reuse_index
        The fragment-reuse index after the rewrite, for indices that were not adapted. Not part of the stored
        transaction.
    storage_version
        New file version of the table if all its files are rewritten in another one. By default it is unchanged. Not
        part of the stored transaction.
    """

    groups: tuple[RewriteGroup, ...]
    rewritten_indices: tuple[RewrittenIndex, ...] = ()
    reuse_index: IndexMetadata | None = field(default=None, compare=False)
    storage_version: str | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Rewrite"

    @property
    def old_ids(self) -> frozenset[int]:
        """Ids of the fragments to remove."""
        return frozenset(fragment.id for group in self.groups for fragment in group.old_fragments)


@dataclass(frozen=True)
class ReserveFragments:
    """Reserves fragment ids for fragments of a later change.

    Attributes
    ----------
    num_fragments
        Number of ids.
    """

    num_fragments: int

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "ReserveFragments"


@dataclass(frozen=True)
class CreateIndex:
    """Adds and removes indices.

    Attributes
    ----------
    new_indices
        Indices to add. An existing one with the same id is replaced.
    removed_indices
        Indices to remove.
    """

    new_indices: tuple[IndexMetadata, ...] = ()
    removed_indices: tuple[IndexMetadata, ...] = ()

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "CreateIndex"


@dataclass(frozen=True)
class Merge:
    """Sets all fragments again, with more or other columns.

    Attributes
    ----------
    fragments
        The complete new list.
    schema
        The new schema, with field ids.
    preserves_nullability
        True if no field became non-nullable, so that rows written concurrently by others still fit.
    moves_names
        True if names may change and move to other fields, because the field ids certainly come from the schema of the
        table. Not part of the stored transaction.
    """

    fragments: tuple[Fragment, ...]
    schema: Schema
    preserves_nullability: bool = False
    moves_names: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Merge"


class UpdateMode(enum.IntEnum):
    """Kind of an `Update`: rows move to new fragments, or columns of fragments get new files."""

    REWRITE_ROWS = 0
    REWRITE_COLUMNS = 1


@dataclass(frozen=True)
class KeyFilter:
    """Keys that a merge inserted. Two merges must not insert the same key.

    Attributes
    ----------
    field_ids
        Key columns.
    key_hashes
        Exact hashes of the keys, None for a Bloom filter.
    bitmap, num_bits, number_of_items, probability
        The split-block Bloom filter, and the parameters it was made with.
    """

    field_ids: tuple[int, ...]
    key_hashes: frozenset[int] | None = None
    bitmap: bytes = b""
    num_bits: int = 0
    number_of_items: int = 0
    probability: float = 0.0


@dataclass(frozen=True)
class CompactedSsTable:
    """Progress of compacting the MemWAL of a shard into the table.

    Attributes
    ----------
    shard_id
        UUID of the shard.
    generation
        Highest compacted generation.
    """

    shard_id: str
    generation: int


@dataclass(frozen=True)
class Update:
    """Changes rows, and may add some: by moving them to new fragments, or by new files for some columns.

    Attributes
    ----------
    removed_fragment_ids
        Fragments to remove.
    updated_fragments
        Fragments with their new deletion file or new data files.
    new_fragments
        New fragments, with id 0. With stable row ids they carry the ids of moved rows. If rows were added after those,
        a fragment carries fewer ids than it has rows.
    fields_modified
        Field ids that got new files.
    compacted_sstables
        Compacted generations of the MemWAL.
    fields_for_preserving_bitmap
        Field ids whose values may have changed. Indices on other fields stay valid for moved rows.
    mode
        Kind of the update.
    inserted_rows
        Keys of added rows, None if they are not known to be unique.
    updated_offsets
        For new files of columns: serialized 32-bit roaring bitmaps of the changed rows, by fragment id.
    """

    removed_fragment_ids: tuple[int, ...] = ()
    updated_fragments: tuple[Fragment, ...] = ()
    new_fragments: tuple[Fragment, ...] = ()
    fields_modified: tuple[int, ...] = ()
    compacted_sstables: tuple[CompactedSsTable, ...] = ()
    fields_for_preserving_bitmap: tuple[int, ...] = ()
    mode: UpdateMode = UpdateMode.REWRITE_ROWS
    inserted_rows: KeyFilter | None = None
    updated_offsets: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Update"


@dataclass(frozen=True)
class Project:
    """Sets another schema over the same files: columns are dropped, renamed, made nullable or required.

    Attributes
    ----------
    schema
        The new schema, with field ids.
    preserves_nullability
        True if no field became non-nullable, so that rows written concurrently by others still fit.
    moves_names
        True if names may move between fields, because the field ids certainly come from the schema of the table. Not
        part of the stored transaction.
    """

    schema: Schema
    preserves_nullability: bool = False
    moves_names: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Project"


@dataclass(frozen=True)
class UpdateMap:
    """Changes to a map of settings.

    Attributes
    ----------
    updates
        New values. None removes a key.
    replace
        True to remove all other keys.
    """

    updates: Mapping[str, str | None]
    replace: bool = False


@dataclass(frozen=True)
class UpdateConfig:
    """Changes settings and metadata.

    Attributes
    ----------
    config, table_metadata, schema_metadata
        Changes to these maps, None if unchanged.
    field_metadata
        Changes to the metadata of fields, by field id.
    """

    config: UpdateMap | None = None
    table_metadata: UpdateMap | None = None
    schema_metadata: UpdateMap | None = None
    field_metadata: Mapping[int, UpdateMap] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "UpdateConfig"


@dataclass(frozen=True)
class DataReplacement:
    """Replaces files by others with new values for columns.

    Attributes
    ----------
    replacements
        Pairs (fragment id, new file). All files contain the same fields.
    """

    replacements: tuple[tuple[int, DataFile], ...]

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "DataReplacement"


@dataclass(frozen=True)
class DataOverlay:
    """Sets new values for some cells of fragments, in overlay files.

    Attributes
    ----------
    groups
        Pairs (fragment id, serialized overlay messages).
    """

    groups: tuple[tuple[int, tuple[bytes, ...]], ...]

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "DataOverlay"


@dataclass(frozen=True)
class UpdateMemWalState:
    """Records generations of the MemWAL that were compacted into the table.

    Attributes
    ----------
    compacted_sstables
        Highest generation of each shard.
    """

    compacted_sstables: tuple[CompactedSsTable, ...]

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "UpdateMemWalState"


@dataclass(frozen=True)
class Clone:
    """Records, in the history of a new table, that it was made from a version of another one.

    Attributes
    ----------
    is_shallow
        True if the files were shared instead of copied.
    ref_name
        Name of the branch or tag that was cloned, None if there is none.
    ref_version, ref_path
        Version and location of the other table.
    branch_name
        Name of the branch if the new table is a branch, None for a separate table.
    """

    is_shallow: bool
    ref_version: int
    ref_path: str
    ref_name: str | None = None
    branch_name: str | None = None

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Clone"


@dataclass(frozen=True)
class UpdateBases:
    """Adds base paths.

    Attributes
    ----------
    new_bases
        The base paths. The commit assigns ids to those with id 0.
    """

    new_bases: tuple[BasePath, ...]

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "UpdateBases"


@dataclass(frozen=True)
class Unknown:
    """An operation that is unknown to this release."""

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Unknown"


Operation = (
    Append
    | Delete
    | Overwrite
    | CreateIndex
    | Rewrite
    | Merge
    | Restore
    | ReserveFragments
    | Update
    | Project
    | UpdateConfig
    | DataReplacement
    | UpdateMemWalState
    | Clone
    | UpdateBases
    | DataOverlay
    | Unknown
)
