"""Handle on one fragment of a dataset: `LanceFragment`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.api.display import fragment_html, fragment_text
from lance_dataset.api.fragment.reading import FragmentReading
from lance_dataset.api.fragment.writing import write_fragments
from lance_dataset.api.scanner.builder import dataset_schema
from lance_dataset.arguments import check_count, checked_integer
from lance_dataset.changes.columns.udf import ColumnValues
from lance_dataset.changes.write.input import ReaderLike
from lance_dataset.errors import InvalidInputError
from lance_dataset.file.explain.report import EncodingReport
from lance_dataset.properties import cached_property
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.session import Session
from lance_dataset.read.shown import Shown
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.take import row_numbers
from lance_dataset.records.defaults import DEFAULT_MAX_ROWS_PER_GROUP
from lance_dataset.records.fragment import DataFile, FragmentMetadata
from lance_dataset.records.schema import LanceSchema
from lance_dataset.records.write_progress import FragmentWriteProgress, checked_progress
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.paths import deletion_name

if TYPE_CHECKING:
    from lance_dataset.changes.write.writing import Mode

__all__ = ["LanceFragment"]

Predicate: TypeAlias = "str | pc.Expression"


class LanceFragment(FragmentReading):
    """Handle on one fragment of an open version of a dataset.

    Parameters
    ----------
    dataset
        The dataset.
    fragment_id
        Id of the fragment; None if `fragment` is given.
    fragment
        Another handle on the fragment.

    Raises
    ------
    InvalidInputError
        The fragment does not exist in the version.
    TypeError
        `fragment_id` is not an integer, or `fragment` is not a LanceFragment.
    """

    def __init__(self, dataset: Shown, fragment_id: int | None, *, fragment: LanceFragment | None = None) -> None:
        if fragment is not None:
            if not isinstance(fragment, LanceFragment):
                raise TypeError(f"fragment must be a LanceFragment, not {type(fragment).__name__}")
            fragment_id = fragment.fragment_id
        if fragment_id is None:
            raise InvalidInputError("Either fragment or fragment_id must be specified")
        if isinstance(fragment_id, bool) or not isinstance(fragment_id, int | np.integer):
            raise TypeError(f"fragment_id must be an integer, not {type(fragment_id).__name__}")
        self._open(dataset.snapshot, int(fragment_id))

    @classmethod
    def of(cls, snapshot: Snapshot, fragment_id: int) -> LanceFragment:
        """Make a handle on a fragment of a snapshot. Raise InvalidInputError if the fragment does not exist."""
        made = cls.__new__(cls)
        made._open(snapshot, fragment_id)
        return made

    def _open(self, snapshot: Snapshot, fragment_id: int) -> None:
        position = snapshot.manifest.fragment_list.position(fragment_id)
        if position is None:
            raise InvalidInputError(f"version {snapshot.version} has no fragment {fragment_id}")
        self._snapshot = snapshot
        self._position = position
        self._fragment_id = fragment_id

    @cached_property
    def _reader(self) -> FragmentReader:
        return self._snapshot.reader.fragments[self._position]

    def __repr__(self) -> str:
        return fragment_text(self._reader.fragment, self._reader.known_physical_rows)

    def _repr_html_(self) -> str:
        reader = self._reader
        return fragment_html(reader.fragment, reader.known_physical_rows, self._snapshot.manifest.schema.arrow)

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceFragment.of, (self._snapshot, self.fragment_id)

    @property
    def metadata(self) -> FragmentMetadata:
        """Metadata of the fragment, from the manifest."""
        return FragmentMetadata.from_fragment(self._reader.fragment)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the dataset. With default scan options, it is the schema that a scan of the dataset returns."""
        return dataset_schema(self._snapshot)

    @property
    def physical_schema(self) -> pa.Schema:
        """Schema of the dataset."""
        return dataset_schema(self._snapshot)

    @property
    def physical_rows(self) -> int:
        """Number of rows in the files, deleted ones included."""
        return self._reader.physical_rows

    @property
    def num_deletions(self) -> int:
        """Number of deleted rows."""
        return self._reader.physical_rows - self._reader.num_rows

    def data_files(self) -> list[DataFile]:
        """Return the metadata of the data files."""
        return list(self.metadata.files)

    def deletion_file(self) -> str | None:
        """Return the path of the deletion file, relative to the dataset, or None without a deletion file."""
        fragment = self._reader.fragment
        if fragment.deletion_file is None:
            return None
        return f"_deletions/{deletion_name(fragment.id, fragment.deletion_file)}"

    def get_fragments(self) -> list[LanceFragment]:
        """Return a list with this fragment."""
        return [self]

    def explain_encodings(self, columns: Sequence[str] | None = None, *, deep: bool = False) -> EncodingReport:
        """Explain the encoding of the files page by page; see `LanceDataset.explain_encodings`."""
        from lance_dataset.file.explain.columns import explain_columns, select_columns, stored_columns

        schema = select_columns(self._snapshot.manifest.schema, columns)
        return explain_columns(stored_columns(schema, self._reader.stored, self.fragment_id), deep)

    def validate(self) -> None:
        """Check that the files exist and agree with the manifest; see `LanceDataset.validate`.

        Raises
        ------
        CorruptFileError, MissingFileError
            A check failed.
        """
        from lance_dataset.read.validation import validate_fragment

        validate_fragment(self._snapshot, self._reader.fragment)

    # -- changing ------------------------------------------------------------------------------------------------

    def delete(self, predicate: str) -> FragmentMetadata | None:
        """Delete rows by predicate without committing. Return the new metadata, or None if no row is left."""
        from lance_dataset.changes.rows.delete import fragment_without_rows

        return _metadata(fragment_without_rows(self._snapshot, self._reader, predicate))

    def delete_rows(self, offsets: Iterable[int]) -> FragmentMetadata | None:
        """Delete rows by physical offset without committing. Return the new metadata, or None if no row is left."""
        from lance_dataset.changes.rows.delete import fragment_without_offsets

        rows = np.unique(row_numbers(list(offsets)))
        if len(rows) and rows[-1] >= self._reader.physical_rows:
            raise InvalidInputError(f"offset {rows[-1]} is out of range: {self._reader.physical_rows} physical rows")
        live = np.setdiff1d(rows, self._reader.deletions)
        return _metadata(fragment_without_offsets(self._snapshot, self._reader, live))

    # -- changing columns ----------------------------------------------------------------------------------------

    def merge(
        self, data_obj: ReaderLike, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Add the columns of another table by a left outer join, without committing.

        Parameters and errors are those of `LanceDataset.merge`.

        Returns
        -------
        fragment : FragmentMetadata
            This fragment with one more data file.
        schema : LanceSchema
            The schema with the new columns. Pass both to `LanceOperation.Merge`, together with the other fragments.
        """
        from lance_dataset.changes.columns.add_columns import fragment_with_columns
        from lance_dataset.changes.columns.join_columns import JoinTransform, RightSide, check_keys

        check_keys(left_on, right_on)
        key = left_on if right_on is None else right_on
        with RightSide(data_obj, key, schema, self._snapshot.reader.locator) as right:
            transform = JoinTransform(self._snapshot, left_on, right)
            fragment, made = fragment_with_columns(self._snapshot, self._reader, transform)
        return fragment, LanceSchema(made)

    def merge_columns(
        self,
        value_func: ColumnValues | ReaderLike,
        columns: Sequence[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Add columns without committing. Several processes may do so for fragments of one version.

        Parameters
        ----------
        value_func
            As for `LanceDataset.add_columns`, except columns of nulls and UDFs with a checkpoint file. Data must have
            one row for each row of this fragment.
        columns
            Columns that are passed to a function; they may include ``_rowid`` and ``_rowaddr``. None for all columns.
        batch_size
            Number of rows in a batch, 1024 by default for functions.
        reader_schema
            Schema of an iterable of record batches.

        Returns
        -------
        fragment : FragmentMetadata
            This fragment with one more data file.
        schema : LanceSchema
            The schema with the new columns. Their field ids are the same for all fragments of the version. Pass both to
            `LanceOperation.Merge`, together with the other fragments.

        Raises
        ------
        InvalidInputError
            As for `LanceDataset.add_columns`, or the UDF has a checkpoint file.
        """
        from lance_dataset.changes.columns.add_columns import merged_fragment

        fragment, made = merged_fragment(self._snapshot, self._reader, value_func, columns, reader_schema, batch_size)
        return fragment, LanceSchema(made)

    @overload
    def update_columns(
        self,
        data_obj: ReaderLike,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: Literal[False] = False,
    ) -> tuple[FragmentMetadata, list[int]]: ...

    @overload
    def update_columns(
        self,
        data_obj: ReaderLike,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: Literal[True],
    ) -> tuple[FragmentMetadata, list[int], bytes]: ...

    def update_columns(
        self,
        data_obj: ReaderLike,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> tuple[FragmentMetadata, list[int]] | tuple[FragmentMetadata, list[int], bytes]:
        """Replace values in columns of this fragment, matched by key, without committing.

        Rows keep their values if the data does not have their key. If several rows of the data have the same key, the
        last one wins. A null key matches a null key. Pass the results to a `LanceOperation.Update` with
        ``update_mode="rewrite_columns"``.

        Parameters
        ----------
        data_obj
            Key and new values: anything that `write_dataset` accepts. The dataset must have its columns.
        left_on
            Key column of the dataset, ``_rowid`` or ``_rowaddr``.
        right_on
            Key column of the data. It is not updated. The default is the same name as `left_on`.
        schema
            Schema of the data; required for iterables.
        with_offsets
            True to return the offsets of changed rows too. With stable row ids, the other rows then keep their row
            versions.

        Returns
        -------
        metadata : FragmentMetadata
            The fragment with a new data file.
        fields_modified : list of int
            Ids of the rewritten fields.
        offsets : bytes
            Only with `with_offsets`: physical offsets of the changed rows as a roaring bitmap, for
            ``updated_fragment_offsets``.

        Raises
        ------
        FieldNotFoundError
            A column does not exist in the dataset or in the data.
        InvalidInputError
            The data is empty, has no column besides the key, or its key has another type.
        SchemaError
            Values have another type, or are null in a column that is not nullable.
        """
        from lance_dataset.changes.columns.update_columns import update_columns

        made = update_columns(self._snapshot, self._reader, data_obj, left_on, right_on, schema)
        metadata = FragmentMetadata.from_fragment(made.fragment)
        if with_offsets:
            return metadata, list(made.fields_modified), made.offsets
        return metadata, list(made.fields_modified)

    # -- creating ------------------------------------------------------------------------------------------------

    @staticmethod
    def create_from_file(filename: str, dataset: Shown, fragment_id: int) -> FragmentMetadata:
        """Describe a fragment that consists of an existing data file, without committing it.

        Parameters
        ----------
        filename
            Path of the file, relative to the data folder of the dataset. Its columns are matched with those of the
            dataset by name. Nullable columns may be missing.
        dataset
            The dataset.
        fragment_id
            Id of the fragment.

        Raises
        ------
        SchemaError, UnsupportedError, MissingFileError, CorruptFileError
            As for `DataFile.create`, or a column that is not nullable is missing.
        """
        from lance_dataset.read.existing_files import existing_fragment

        check_count("fragment_id", fragment_id)
        return FragmentMetadata.from_fragment(existing_fragment(dataset.snapshot, filename, fragment_id))

    @staticmethod
    def create(
        dataset_uri: str | os.PathLike[str],
        data: ReaderLike,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int = DEFAULT_MAX_ROWS_PER_GROUP,
        progress: FragmentWriteProgress | None = None,
        mode: Mode = "append",
        *,
        data_storage_version: str | None = None,
        use_legacy_format: bool | None = None,
        storage_options: Mapping[str, str] | None = None,
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
        session: Session | None = None,
    ) -> FragmentMetadata:
        """Write data as one fragment without committing it.

        Raises
        ------
        InvalidInputError
            The data has no rows, or `fragment_id` is not a number of 64 bits.
        """
        number = 0 if fragment_id is None else checked_integer("fragment_id", fragment_id)
        written = write_fragments(
            data,
            dataset_uri,
            schema,
            mode=mode,
            max_rows_per_file=2**62,
            max_rows_per_group=max_rows_per_group,
            max_bytes_per_file=2**62,
            progress=checked_progress(progress, number),
            data_storage_version=data_storage_version,
            use_legacy_format=use_legacy_format,
            storage_options=storage_options,
            namespace_client=namespace_client,
            table_id=table_id,
            session=session,
        )
        if not written:
            raise InvalidInputError("a fragment needs at least one row")
        metadata = written[0]
        metadata.id = number
        return metadata


def _metadata(fragment: Fragment | None) -> FragmentMetadata | None:
    return None if fragment is None else FragmentMetadata.from_fragment(fragment)
