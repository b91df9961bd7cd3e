"""The kinds of changes a commit can make, as users write them down."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lance_dataset.fragment_metadata import DataFile, FragmentMetadata
from lance_dataset.index_record import Index, IndexFile
from lance_dataset.lance_schema import LanceSchema
from lance_dataset.settings import DatasetBasePath
from lance_dataset.table.operations import CompactedSsTable, KeyFilter

__all__ = ["LanceOperation", "Transaction"]


def _check_fragments(fragments: Any) -> None:
    if not isinstance(fragments, list):
        raise TypeError(f"fragments must be list[FragmentMetadata], got {type(fragments)}")
    for fragment in fragments:
        if not isinstance(fragment, FragmentMetadata):
            raise TypeError(f"fragments must be list[FragmentMetadata], got {type(fragment)}")


class LanceOperation:
    """The kinds of changes a commit can make.

    `LanceDataset.commit` takes all of them but `Clone`, which stands in the history of a table that was made from
    another one, `DataOverlay`, whose files this release does not handle, and `Other`.
    """

    class BaseOperation:
        """Root of all operations."""

    @dataclass
    class Append(BaseOperation):
        """New fragments behind the existing ones.

        Parameters
        ----------
        fragments
            Fragments as `write_fragments` returns them; their ids are given at commit.
        """

        fragments: list[FragmentMetadata]

        def __post_init__(self) -> None:
            _check_fragments(self.fragments)

    @dataclass
    class Overwrite(BaseOperation):
        """A new schema and new fragments in place of all that is there; also creates datasets.

        Parameters
        ----------
        new_schema
            The schema; a pyarrow schema gets field ids depth first from 0, as `write_fragments` gives them.
        fragments
            All fragments.
        initial_bases
            Base paths of a dataset that is created, each with its id.
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
        """Rows are masked, and fragments without live rows dropped.

        Parameters
        ----------
        updated_fragments
            Fragments with their new deletion files.
        deleted_fragment_ids
            Fragments that go.
        predicate
            What was deleted, for information.
        """

        updated_fragments: list[FragmentMetadata]
        deleted_fragment_ids: list[int]
        predicate: str

        def __post_init__(self) -> None:
            _check_fragments(self.updated_fragments)

    @dataclass
    class Restore(BaseOperation):
        """The content of an older version again.

        Parameters
        ----------
        version
            The older version.
        """

        version: int

    @dataclass
    class Update(BaseOperation):
        """Rows that move to new fragments, or columns that get new files in their fragments.

        Parameters
        ----------
        removed_fragment_ids
            Fragments that go.
        updated_fragments
            Fragments with new deletion files or new data files.
        new_fragments
            New fragments. With stable row ids they carry those of the rows that moved (`row_id_meta`); rows behind
            them are new.
        fields_modified
            Ids of the fields that got new files: indices on them no longer cover the updated fragments.
        fields_for_preserving_frag_bitmap
            Ids of the fields whose values may have changed in rows that moved: indices on others cover these still.
        update_mode
            ``"rewrite_rows"`` (also the meaning of an empty text) or ``"rewrite_columns"``.
        updated_fragment_offsets
            For ``"rewrite_columns"``: the rows that changed, a serialized 32-bit roaring bitmap for each fragment id.
        """

        removed_fragment_ids: list[int] = field(default_factory=list)
        updated_fragments: list[FragmentMetadata] = field(default_factory=list)
        new_fragments: list[FragmentMetadata] = field(default_factory=list)
        fields_modified: list[int] = field(default_factory=list)
        fields_for_preserving_frag_bitmap: list[int] = field(default_factory=list)
        update_mode: str = ""
        updated_fragment_offsets: dict[int, bytes] | None = None
        # What the reference's record leaves out, carried from a stored transaction to the next commit of it.
        _inserted_rows: KeyFilter | None = field(default=None, init=False, repr=False, compare=False)
        _compacted: tuple[CompactedSsTable, ...] = field(default=(), init=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            _check_fragments(self.updated_fragments)
            _check_fragments(self.new_fragments)

    @dataclass
    class Merge(BaseOperation):
        """All fragments again, with added or replaced columns.

        Parameters
        ----------
        fragments
            All fragments of the dataset, with their new files.
        schema
            The schema with the new columns.
        preserves_nullability
            Whether no column became required, so that rows that others add meanwhile fit.
        """

        fragments: list[FragmentMetadata]
        schema: LanceSchema | pa.Schema
        preserves_nullability: bool = False

        def __post_init__(self) -> None:
            _check_fragments(self.fragments)

    @dataclass
    class Project(BaseOperation):
        """Another schema over the same files: columns dropped, renamed, made nullable or required.

        Parameters
        ----------
        schema
            The new schema.
        preserves_nullability
            Whether no column became required, so that rows that others add meanwhile fit.
        """

        schema: LanceSchema
        preserves_nullability: bool = False

    @dataclass
    class RewriteGroup:
        """Fragments that others with the same rows replace.

        Parameters
        ----------
        old_fragments, new_fragments
            What goes and what comes.
        """

        old_fragments: list[FragmentMetadata]
        new_fragments: list[FragmentMetadata]

        def __post_init__(self) -> None:
            _check_fragments(self.old_fragments)
            _check_fragments(self.new_fragments)

    @dataclass
    class RewrittenIndex:
        """An index made anew for rewritten fragments.

        Parameters
        ----------
        old_id, new_id
            UUIDs of the index before and after.
        new_details_type_url, new_details_value
            Description of the new one: a serialized message, and the URL of its type.
        new_index_version
            Version of its format.
        """

        old_id: str
        new_id: str
        new_details_type_url: str
        new_details_value: bytes
        new_index_version: int
        _files: tuple[IndexFile, ...] = field(default=(), init=False, repr=False, compare=False)

    @dataclass
    class Rewrite(BaseOperation):
        """Compaction: fragments replaced by others with the same rows.

        Parameters
        ----------
        groups
            What replaces what.
        rewritten_indices
            Indices that were adapted.
        """

        groups: list[LanceOperation.RewriteGroup]
        rewritten_indices: list[LanceOperation.RewrittenIndex]

    @dataclass
    class DataReplacementGroup:
        """A fragment and the file that replaces its columns.

        Parameters
        ----------
        fragment_id, new_file
            The fragment and its new file, which has all its rows, deleted ones included.
        """

        fragment_id: int
        new_file: DataFile

    @dataclass
    class DataReplacement(BaseOperation):
        """New files for some columns of some fragments.

        Parameters
        ----------
        replacements
            Fragments and files; all files have the same fields.
        """

        replacements: list[LanceOperation.DataReplacementGroup]

    @dataclass
    class DataOverlayFile:
        """New values for some cells of a fragment.

        Parameters
        ----------
        data_file
            Holds a column for each of its fields.
        offsets
            Rows it has values for: one list of offsets for all columns, or one for each.
        committed_version
            Version that brought it, None before its commit.
        """

        data_file: DataFile
        offsets: Iterable[int] | list[Iterable[int]]
        committed_version: int | None = None

    @dataclass
    class DataOverlayGroup:
        """A fragment and the overlays it gets.

        Parameters
        ----------
        fragment_id, overlays
            The fragment and its new overlay files.
        """

        fragment_id: int
        overlays: list[LanceOperation.DataOverlayFile]

    @dataclass
    class DataOverlay(BaseOperation):
        """New values for some cells; a record of what others did, which cannot be committed.

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
            Whether other keys go.
        """

        updates: dict[str, str | None]
        replace: bool = False

    @dataclass
    class UpdateConfig(BaseOperation):
        """Changes of settings and metadata.

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
        """Indices added and removed.

        Parameters
        ----------
        new_indices, removed_indices
            Indices to add and to remove.
        """

        new_indices: list[Index]
        removed_indices: list[Index]

    @dataclass
    class Clone(BaseOperation):
        """The dataset was made from a version of another one; stands in its history, and cannot be committed.

        Parameters
        ----------
        is_shallow
            Whether the files stayed where they were.
        ref_name
            Branch or tag that was cloned.
        ref_version, ref_path
            Version and location of the other dataset.
        branch_name
            Name of the branch that the new dataset is.
        """

        is_shallow: bool
        ref_name: str | None
        ref_version: int
        ref_path: str
        branch_name: str | None

    @dataclass
    class Other(BaseOperation):
        """An operation without a record of its own: a change of the dataset's own making, or one of a later release.

        Parameters
        ----------
        name
            Name of the kind.
        """

        name: str


@dataclass
class Transaction:
    """A change, computed against a version and ready to be committed.

    Parameters
    ----------
    read_version
        Version the change was computed against.
    operation
        The change.
    uuid
        Unique id.
    transaction_properties
        Free properties stored with it.
    """

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    transaction_properties: dict[str, str] | None = field(default_factory=dict)
