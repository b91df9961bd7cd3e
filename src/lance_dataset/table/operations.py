"""What a transaction changes: one value per kind of operation of the format."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_dataset.schema import Schema
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.indices.metadata import IndexDetails, IndexFile, IndexMetadata
from lance_dataset.table.manifest import BasePath

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
    """New fragments behind the existing ones.

    Attributes
    ----------
    fragments
        New fragments; with id 0 they get their ids at commit.
    """

    fragments: tuple[Fragment, ...]

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "Append"


@dataclass(frozen=True)
class Delete:
    """Rows are masked, and fragments without live rows dropped.

    Attributes
    ----------
    updated_fragments
        Fragments with their new deletion file.
    deleted_fragment_ids
        Fragments that go.
    predicate
        What was deleted, as SQL text; for information.
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
    """A new schema and new fragments in place of all that is there; also creates tables.

    Attributes
    ----------
    schema
        The new schema, field ids given.
    fragments
        All fragments.
    config_upserts
        Settings to add to the config.
    initial_bases
        Base paths of a new table.
    storage_version
        File version of the table when there are no new files that would tell it; by default it stays as it is. Not part
        of the stored transaction.
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
    """The content of an older version again.

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
    """Fragments, and those that have the same live rows in the same order.

    Attributes
    ----------
    old_fragments
        Fragments that go.
    new_fragments
        Fragments that take their place; with id 0 they get their ids at commit.
    """

    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]


@dataclass(frozen=True)
class RewrittenIndex:
    """An index that takes the place of another one, for rewritten fragments.

    Attributes
    ----------
    old_id, new_id
        UUIDs of the index before and after.
    details
        Description of the new one, by the URL of its type.
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
    """Fragments are replaced by others with the same rows: compaction.

    Attributes
    ----------
    groups
        What replaces what.
    rewritten_indices
        Indices that were adapted to the new fragments.
    reuse_index
        The fragment-reuse index after the rewrite, for indices that were not adapted. Not part of the stored
        transaction.
    storage_version
        File version of the table from now on, when all its files are rewritten in another one; by default it stays as
        it is. Not part of the stored transaction.
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
        """Ids of the fragments that go."""
        return frozenset(fragment.id for group in self.groups for fragment in group.old_fragments)


@dataclass(frozen=True)
class ReserveFragments:
    """Fragment ids are set aside for fragments that a later change brings.

    Attributes
    ----------
    num_fragments
        How many.
    """

    num_fragments: int

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "ReserveFragments"


@dataclass(frozen=True)
class CreateIndex:
    """Indices are added and removed.

    Attributes
    ----------
    new_indices
        Indices to add; one that is there under the same id is replaced.
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
    """All fragments again, with more or other columns.

    Attributes
    ----------
    fragments
        The whole new list.
    schema
        The new schema, field ids given.
    preserves_nullability
        Whether no field became non-nullable, so that rows written by others meanwhile still fit.
    moves_names
        Whether names may change and move to other fields, the field ids being sure to come from the schema of the
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
    """How an `Update` changes rows: they move to new fragments, or columns of fragments get new files."""

    REWRITE_ROWS = 0
    REWRITE_COLUMNS = 1


@dataclass(frozen=True)
class KeyFilter:
    """Which keys a merge inserted: two merges must not insert the same one.

    Attributes
    ----------
    field_ids
        Key columns.
    key_hashes
        Exact hashes of the keys, None for a bloom filter.
    bitmap, num_bits, number_of_items, probability
        The split-block bloom filter, and the parameters it was made with.
    """

    field_ids: tuple[int, ...]
    key_hashes: frozenset[int] | None = None
    bitmap: bytes = b""
    num_bits: int = 0
    number_of_items: int = 0
    probability: float = 0.0


@dataclass(frozen=True)
class CompactedSsTable:
    """How far the log of a shard was taken over into the table.

    Attributes
    ----------
    shard_id
        UUID of the shard.
    generation
        Highest generation taken over.
    """

    shard_id: str
    generation: int


@dataclass(frozen=True)
class Update:
    """Rows are changed, and perhaps added: by moving them to new fragments, or by new files for some columns.

    Attributes
    ----------
    removed_fragment_ids
        Fragments that go.
    updated_fragments
        Fragments with their new deletion file or new data files.
    new_fragments
        New fragments, with id 0; with stable row ids they carry the ids of rows that were moved, and fewer than they
        have rows if rows were added behind those.
    fields_modified
        Field ids that got new files.
    compacted_sstables
        What was taken over from a log.
    fields_for_preserving_bitmap
        Field ids whose values may have changed; indices on other fields stay valid for moved rows.
    mode
        Which of the two ways.
    inserted_rows
        Keys of added rows, None where they are not known to be unique.
    updated_offsets
        For new files of columns: serialized 32-bit roaring bitmaps of the rows that changed, by fragment id.
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
    """Another schema over the same files: columns dropped, renamed, made nullable or required.

    Attributes
    ----------
    schema
        The new schema, field ids given.
    preserves_nullability
        Whether no field became non-nullable, so that rows written by others meanwhile still fit.
    moves_names
        Whether names may move from field to field, the field ids being sure to come from the schema of the table. Not
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
    """Changes of a map of settings.

    Attributes
    ----------
    updates
        New values; None removes a key.
    replace
        Whether all other keys go.
    """

    updates: Mapping[str, str | None]
    replace: bool = False


@dataclass(frozen=True)
class UpdateConfig:
    """Settings and metadata are changed.

    Attributes
    ----------
    config, table_metadata, schema_metadata
        Changes of these maps, None for none.
    field_metadata
        Changes of the metadata of fields, by field id.
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
    """Files with new values for columns take the place of others.

    Attributes
    ----------
    replacements
        (fragment id, new file) pairs; all files hold the same fields.
    """

    replacements: tuple[tuple[int, DataFile], ...]

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "DataReplacement"


@dataclass(frozen=True)
class DataOverlay:
    """New values for some cells of fragments, in overlay files.

    Attributes
    ----------
    groups
        (fragment id, serialized overlay messages) pairs.
    """

    groups: tuple[tuple[int, tuple[bytes, ...]], ...]

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "DataOverlay"


@dataclass(frozen=True)
class UpdateMemWalState:
    """Generations of a log that were taken over into the table.

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
    """The table was made from a version of another one; stands in the history of the new table.

    Attributes
    ----------
    is_shallow
        Whether the files stayed where they were.
    ref_name
        Name of the branch or tag that was cloned, None without one.
    ref_version, ref_path
        Version and location of the other table.
    branch_name
        Name of the branch that the new table is, None for a table of its own.
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
    """Base paths are added.

    Attributes
    ----------
    new_bases
        The base paths; with id 0 they get their ids at commit.
    """

    new_bases: tuple[BasePath, ...]

    @property
    def name(self) -> str:
        """Name of the kind of operation."""
        return "UpdateBases"


@dataclass(frozen=True)
class Unknown:
    """An operation this release has never heard of."""

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
