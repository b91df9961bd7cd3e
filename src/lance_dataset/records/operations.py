"""Public operations that a commit can apply, and transactions of them."""

from __future__ import annotations

import uuid
import warnings
from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_dataset.late_dataclass import dataclass
from lance_dataset.records.fragment import DataFile, FragmentMetadata
from lance_dataset.records.index import Index, IndexFile
from lance_dataset.records.schema import LanceSchema
from lance_dataset.records.settings import DatasetBasePath

if TYPE_CHECKING:
    from lance_dataset.table.operations import CompactedSsTable, KeyFilter

__all__ = ["LANCE_COMMIT_MESSAGE_KEY", "LanceOperation", "Transaction", "commit_properties"]

#: Property of a transaction that holds the message of a commit.
LANCE_COMMIT_MESSAGE_KEY = "__lance_commit_message"


def _check_fragments(fragments: Any) -> None:
    if not isinstance(fragments, list):
        raise TypeError(f"fragments must be list[FragmentMetadata], got {type(fragments)}")
    for fragment in fragments:
        if not isinstance(fragment, FragmentMetadata):
            raise TypeError(f"fragments must be list[FragmentMetadata], got {type(fragment)}")


class LanceOperation:
    """Namespace of all operations that a commit can apply.

    `LanceDataset.commit` accepts all of them except `Clone`, which is part of the history of a table that was cloned,
    `DataOverlay`, whose files this release does not support, and `Other`.
    """

    class BaseOperation(ABC):  # noqa: B024 - as in the reference
        """Base class of all operations."""

    @dataclass
    class Append(BaseOperation):
        """Append new fragments.

        Parameters
        ----------
        fragments
            Fragments as `write_fragments` returns them. Their ids are assigned at commit.
        """

        fragments: list[FragmentMetadata]

        def __post_init__(self) -> None:
            _check_fragments(self.fragments)

    @dataclass
    class Overwrite(BaseOperation):
        """Replace the schema and all fragments, or create a dataset.

        Parameters
        ----------
        new_schema
            The schema. The fields of a pyarrow schema are numbered depth first from 0, as by `write_fragments`.
        fragments
            All fragments.
        initial_bases
            Base paths of a new dataset, each with its id.
        """

        new_schema: LanceSchema | pa.Schema
        fragments: list[FragmentMetadata]
        initial_bases: list[DatasetBasePath] | None = None

        def __post_init__(self) -> None:
            if not isinstance(self.new_schema, (LanceSchema, pa.Schema)):
                raise TypeError(f"new_schema must be pyarrow.Schema or LanceSchema, got {type(self.new_schema)}")
            _check_fragments(self.fragments)

    @dataclass
    class Delete(BaseOperation):
        """Mask rows, and drop fragments without live rows.

        Parameters
        ----------
        updated_fragments
            Fragments with their new deletion files.
        deleted_fragment_ids
            Ids of the fragments to drop.
        predicate
            Predicate of the deleted rows, for information only.
        """

        updated_fragments: list[FragmentMetadata]
        deleted_fragment_ids: list[int]
        predicate: str

        def __post_init__(self) -> None:
            _check_fragments(self.updated_fragments)

    @dataclass
    class Restore(BaseOperation):
        """Restore the content of an older version.

        Parameters
        ----------
        version
            The older version.
        """

        version: int

    @dataclass
    class Update(BaseOperation):
        """Move rows to new fragments, or add new files for columns of existing fragments.

        Parameters
        ----------
        removed_fragment_ids
            Ids of the fragments to drop.
        updated_fragments
            Fragments with new deletion files or new data files.
        new_fragments
            New fragments. With stable row ids, `row_id_meta` holds the ids of the moved rows; the rows after them are
            new.
        fields_modified
            Ids of the fields with new files. Indices on them no longer cover the updated fragments.
        fields_for_preserving_frag_bitmap
            Ids of the fields whose values may have changed in moved rows. Indices on other fields still cover these
            rows.
        update_mode
            ``"rewrite_rows"`` (also for an empty string) or ``"rewrite_columns"``.
        updated_fragment_offsets
            For ``"rewrite_columns"``: the changed rows, as a serialized 32-bit roaring bitmap for each fragment id.
        """

        removed_fragment_ids: list[int] = field(default_factory=list)
        updated_fragments: list[FragmentMetadata] = field(default_factory=list)
        new_fragments: list[FragmentMetadata] = field(default_factory=list)
        fields_modified: list[int] = field(default_factory=list)
        fields_for_preserving_frag_bitmap: list[int] = field(default_factory=list)
        update_mode: str = ""
        updated_fragment_offsets: dict[int, bytes] | None = None
        # Not part of the reference's record; kept from a stored transaction for the next commit of it.
        _inserted_rows: KeyFilter | None = field(default=None, init=False, repr=False, compare=False)
        _compacted: tuple[CompactedSsTable, ...] = field(default=(), init=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            _check_fragments(self.updated_fragments)
            _check_fragments(self.new_fragments)

    @dataclass
    class Merge(BaseOperation):
        """Replace all fragments by versions with added or replaced columns.

        Parameters
        ----------
        fragments
            All fragments of the dataset, with their new files.
        schema
            Schema with the new columns. A pyarrow schema is deprecated, since it has no field ids.
        preserves_nullability
            True if no column became non-nullable, so that rows of concurrent appends remain valid.
        """

        fragments: list[FragmentMetadata]
        schema: LanceSchema | pa.Schema
        preserves_nullability: bool = False

        def __post_init__(self) -> None:
            _check_fragments(self.fragments)
            if isinstance(self.schema, pa.Schema):
                warnings.warn(
                    "Passing a pyarrow.Schema to Merge is deprecated. Please use a LanceSchema instead.",
                    DeprecationWarning,
                    stacklevel=3,
                )

    @dataclass
    class Project(BaseOperation):
        """Change the schema but not the files: drop or rename columns, or change their nullability.

        Parameters
        ----------
        schema
            The new schema.
        preserves_nullability
            True if no column became non-nullable, so that rows of concurrent appends remain valid.
        """

        schema: LanceSchema
        preserves_nullability: bool = False

    @dataclass
    class RewriteGroup:
        """Group of fragments that is replaced by fragments with the same rows.

        Parameters
        ----------
        old_fragments, new_fragments
            Fragments to drop, and fragments that replace them.
        """

        old_fragments: list[FragmentMetadata]
        new_fragments: list[FragmentMetadata]

        def __post_init__(self) -> None:
            _check_fragments(self.old_fragments)
            _check_fragments(self.new_fragments)

    @dataclass
    class RewrittenIndex:
        """Index that was rebuilt for rewritten fragments.

        Parameters
        ----------
        old_id, new_id
            UUIDs of the old and the new index.
        new_details_type_url, new_details_value
            Description of the new index: type URL, and serialized message.
        new_index_version
            Format version of the new index.
        """

        old_id: str
        new_id: str
        new_details_type_url: str
        new_details_value: bytes
        new_index_version: int
        _files: tuple[IndexFile, ...] = field(default=(), init=False, repr=False, compare=False)

    @dataclass
    class Rewrite(BaseOperation):
        """Compact fragments: replace them by fragments with the same rows.

        Parameters
        ----------
        groups
            Groups of old and new fragments.
        rewritten_indices
            Indices that were rebuilt.
        """

        groups: list[LanceOperation.RewriteGroup]
        rewritten_indices: list[LanceOperation.RewrittenIndex]

    @dataclass
    class DataReplacementGroup:
        """Fragment, and the file that replaces some of its columns.

        Parameters
        ----------
        fragment_id, new_file
            Id of the fragment, and its new file, which has all its rows, including deleted ones.
        """

        fragment_id: int
        new_file: DataFile

    @dataclass
    class DataReplacement(BaseOperation):
        """Replace some columns of some fragments by new files.

        Parameters
        ----------
        replacements
            Fragments and files. All files have the same fields.
        """

        replacements: list[LanceOperation.DataReplacementGroup]

    @dataclass
    class DataOverlayFile:
        """File with new values for some cells of a fragment.

        Parameters
        ----------
        data_file
            File with a column for each of its fields.
        offsets
            Offsets of the rows with new values: one list for all columns, or one list per column.
        committed_version
            Version that added it; None before its commit.
        """

        data_file: DataFile
        offsets: Iterable[int] | list[Iterable[int]]
        committed_version: int | None = None

    @dataclass
    class DataOverlayGroup:
        """Fragment, and its new overlays.

        Parameters
        ----------
        fragment_id, overlays
            Id of the fragment, and its new overlay files.
        """

        fragment_id: int
        overlays: list[LanceOperation.DataOverlayFile]

    @dataclass
    class DataOverlay(BaseOperation):
        """Add new values for some cells. This is a record of other writers' commits, and cannot be committed.

        Parameters
        ----------
        groups
            Fragments and their new overlays.
        """

        groups: list[LanceOperation.DataOverlayGroup]

    @dataclass
    class UpdateMap:
        """Changes of a map of settings.

        Parameters
        ----------
        updates
            New values; None removes a key.
        replace
            True to remove all other keys.
        """

        updates: dict[str, str | None]
        replace: bool = False

    @dataclass
    class UpdateConfig(BaseOperation):
        """Change settings and metadata.

        Parameters
        ----------
        config_updates, table_metadata_updates, schema_metadata_updates
            Changes of these maps.
        field_metadata_updates
            Changes of the metadata of fields, by field id.
        """

        config_updates: LanceOperation.UpdateMap | None = None
        table_metadata_updates: LanceOperation.UpdateMap | None = None
        schema_metadata_updates: LanceOperation.UpdateMap | None = None
        field_metadata_updates: dict[int, LanceOperation.UpdateMap] | None = None

    @dataclass
    class CreateIndex(BaseOperation):
        """Add and remove indices.

        Parameters
        ----------
        new_indices, removed_indices
            Indices to add and to remove.
        """

        new_indices: list[Index]
        removed_indices: list[Index]

    @dataclass
    class Clone(BaseOperation):
        """Clone of a version of another dataset. It is part of the history of the new dataset, and cannot be committed.

        Parameters
        ----------
        is_shallow
            True if the files were not copied.
        ref_name
            Branch or tag that was cloned.
        ref_version, ref_path
            Version and location of the other dataset.
        branch_name
            Name of the branch, if the clone is a branch.
        """

        is_shallow: bool
        ref_name: str | None
        ref_version: int
        ref_path: str
        branch_name: str | None

    @dataclass
    class Other(BaseOperation):
        """Operation without a public record: an internal change, or an operation of a later release.

        Parameters
        ----------
        name
            Name of the kind.
        """

        name: str


@dataclass
class Transaction:
    """Change that was computed against a version and can be committed.

    Parameters
    ----------
    read_version
        Version that the change was computed against.
    operation
        The change.
    uuid
        Unique id.
    transaction_properties
        Arbitrary properties that are stored with it.
    """

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    transaction_properties: dict[str, str] | None = field(default_factory=dict)


def commit_properties(given: Mapping[str, str] | None, message: str | None) -> dict[str, str]:
    """Return the properties of a transaction with its commit message, if it has one."""
    properties = dict(given or {})
    if message is not None:
        properties[LANCE_COMMIT_MESSAGE_KEY] = message
    return properties
