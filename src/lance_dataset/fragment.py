"""What users hold of a fragment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.arguments import check_arrow_options, check_count
from lance_dataset.changes.add_columns import fragment_with_columns, merged_fragment
from lance_dataset.changes.existing_files import existing_fragment
from lance_dataset.changes.join_columns import JoinTransform, RightSide, check_keys
from lance_dataset.changes.update_columns import update_columns
from lance_dataset.display import fragment_html, fragment_text
from lance_dataset.errors import InvalidInputError, RowIndexError
from lance_dataset.file.explain import EncodingReport, explain_columns, select_columns, stored_columns
from lance_dataset.fragment_metadata import (
    DataFile,
    DeletionFile,
    FragmentMetadata,
    RowDatasetVersionMeta,
    RowIdMeta,
)
from lance_dataset.fragment_session import FragmentSession
from lance_dataset.fragment_writer import remove_uncommitted, write_fragments
from lance_dataset.lance_schema import LanceSchema
from lance_dataset.query.delete import delete_offsets, delete_where
from lance_dataset.query.expr import compile_filter
from lance_dataset.query.projection import Projection, full_schema, with_blob_values
from lance_dataset.query.take import row_numbers, take_fragment_rows
from lance_dataset.scannable import ScannableFragment, scan_method
from lance_dataset.scanner import ColumnOrdering, LanceScanner, ProgressOption, ScannerBuilder
from lance_dataset.schema import Schema
from lance_dataset.session import Session
from lance_dataset.table.paths import deletion_name
from lance_dataset.validation import validate_fragment
from lance_dataset.writer import DEFAULT_MAX_ROWS_PER_GROUP

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset
    from lance_dataset.query.fragment_reader import FragmentReader

__all__ = [
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "FragmentSession",
    "LanceFragment",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "remove_uncommitted",
    "write_fragments",
]

Columns = Sequence[str] | Mapping[str, str] | None


class LanceFragment(ScannableFragment):
    """One fragment of an open dataset version.

    Parameters
    ----------
    dataset
        The dataset.
    fragment_id
        Id of the fragment; None where `fragment` is given.
    fragment
        Another handle on the fragment.

    Raises
    ------
    InvalidInputError
        The version has no such fragment.
    TypeError
        An id that is no integer, a fragment that is none.
    """

    def __init__(
        self, dataset: LanceDataset, fragment_id: int | None, *, fragment: LanceFragment | None = None
    ) -> None:
        self._dataset = dataset = dataset._snapshot()  # the handle itself may move to another version
        if fragment is not None:
            if not isinstance(fragment, LanceFragment):
                raise TypeError(f"fragment must be a LanceFragment, not {type(fragment).__name__}")
            fragment_id = fragment.fragment_id
        if fragment_id is None:
            raise InvalidInputError("Either fragment or fragment_id must be specified")
        if isinstance(fragment_id, bool) or not isinstance(fragment_id, int | np.integer):
            raise TypeError(f"fragment_id must be an integer, not {type(fragment_id).__name__}")
        position = dataset._manifest.fragment_list.position(fragment_id)
        if position is None:
            raise InvalidInputError(f"version {dataset.version} has no fragment {fragment_id}")
        self._table_reader = dataset._reader
        self._position = position
        self._fragment_id = int(fragment_id)

    @cached_property
    def _reader(self) -> FragmentReader:
        return self._table_reader.fragments[self._position]

    def __repr__(self) -> str:
        return fragment_text(self._reader.fragment, vars(self._reader).get("physical_rows"))

    def _repr_html_(self) -> str:
        known = vars(self._reader).get("physical_rows")
        return fragment_html(self._reader.fragment, known, self._dataset._manifest.schema.arrow)

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceFragment, (self._dataset, self.fragment_id)

    @property
    def fragment_id(self) -> int:
        """Id of the fragment."""
        return self._fragment_id

    @property
    def metadata(self) -> FragmentMetadata:
        """What the manifest says of the fragment."""
        return FragmentMetadata.from_fragment(self._reader.fragment)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the dataset."""
        return self._dataset.schema

    @property
    def physical_schema(self) -> pa.Schema:
        """Schema of the dataset."""
        return self._dataset.schema

    @property
    def physical_rows(self) -> int:
        """Rows in the files, deleted ones included."""
        return self._reader.physical_rows

    @property
    def num_deletions(self) -> int:
        """Deleted rows."""
        return self._reader.physical_rows - self._reader.num_rows

    def data_files(self) -> list[DataFile]:
        """The data files."""
        return list(self.metadata.files)

    def deletion_file(self) -> str | None:
        """Path of the deletion file below the dataset, None if there is none."""
        fragment = self._reader.fragment
        if fragment.deletion_file is None:
            return None
        return f"_deletions/{deletion_name(fragment.id, fragment.deletion_file)}"

    # -- reading -------------------------------------------------------------------------------------------------

    def count_rows(
        self, filter: str | pc.Expression | None = None, *, progress: ProgressOption = None, **kwargs: Any
    ) -> int:
        """Live rows, or those that a filter keeps; `progress` as for `LanceDataset.count_rows`."""
        if filter is None and not kwargs:
            return self._reader.num_rows
        return self.scanner(columns=[], filter=filter, **kwargs).count_rows(progress=progress)

    def scanner(
        self,
        columns: Columns = None,
        filter: str | pc.Expression | None = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling: str | None = None,
        order_by: Sequence[ColumnOrdering | str] | None = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
        *,
        batch_size: int | None = None,
        batch_readahead: int = 16,
        row_range: tuple[int, int] | None = None,
        **arrow_options: Any,
    ) -> LanceScanner:
        """A scanner on this fragment; parameters as for `LanceDataset.scanner`.

        Parameters
        ----------
        row_range
            Physical row offsets ``[start, stop)`` to read; None for all.
        """
        given = {name: value for name, value in locals().items() if name not in ("self", "columns", "arrow_options")}
        check_arrow_options(arrow_options)
        builder = ScannerBuilder(self._dataset, {}).columns(columns).with_fragments([self])
        return builder.apply_defaults(given).to_scanner()

    to_table = scan_method(scanner, LanceScanner.to_table, "Scan into a table")
    to_batches = scan_method(scanner, LanceScanner.to_batches, "Scan as a stream of record batches")
    to_pandas = scan_method(scanner, LanceScanner.to_pandas, "Scan into a DataFrame")

    def take(self, indices: Sequence[int] | pa.Array, columns: Columns = None, **kwargs: Any) -> pa.Table:
        """Rows by their number among the live rows of the fragment; blob columns come as their values.

        Raises
        ------
        RowIndexError
            A number outside the fragment.
        """
        projection = with_blob_values(self._dataset._take_projection(columns))
        return self._taken(indices, projection, self._dataset._scanned_schema)

    def _taken(self, indices: Sequence[int] | pa.Array, projection: Projection, schema: Schema) -> pa.Table:
        rows = row_numbers(indices)
        if len(rows) and int(rows.max()) >= self._reader.num_rows:
            raise RowIndexError(
                f"row number {int(rows.max())} is out of range: fragment {self.fragment_id} has "
                f"{self._reader.num_rows} rows"
            )
        return projection.for_user(take_fragment_rows(self._reader, self._reader.physical(rows), projection, schema))

    def open_session(
        self, columns: Sequence[str] | None = None, with_row_address: bool | None = None
    ) -> FragmentSession:
        """What takes from this fragment again and again: the columns are looked up and opened once.

        Parameters
        ----------
        columns
            As for `take`.
        with_row_address
            Append ``_rowaddr``.

        Raises
        ------
        FieldNotFoundError
            Unknown column.
        """
        if isinstance(columns, str | Mapping):
            raise TypeError(f"columns must be a list of names, not {type(columns).__name__}")
        return FragmentSession(self, columns, with_row_address)

    def get_fragments(self) -> list[LanceFragment]:
        """The fragment itself."""
        return [self]

    def explain_encodings(self, columns: Sequence[str] | None = None, *, deep: bool = False) -> EncodingReport:
        """What its files store page by page; see `LanceDataset.explain_encodings`."""
        schema = select_columns(self._dataset._manifest.schema, columns)
        return explain_columns(stored_columns(schema, self._reader.stored, self.fragment_id), deep)

    def validate(self) -> None:
        """Check that its files are there and agree with the manifest; see `LanceDataset.validate`.

        Raises
        ------
        CorruptFileError, MissingFileError
            Something is wrong.
        """
        validate_fragment(self._dataset, self._reader.fragment)

    # -- changing ------------------------------------------------------------------------------------------------

    def delete(self, predicate: str) -> FragmentMetadata | None:
        """Delete rows by predicate without committing: new metadata, or None if no row is left."""
        schema = self._dataset._scanned_schema
        bound = compile_filter(predicate, full_schema(schema))
        if bound is None:
            raise TypeError("delete needs a predicate; 'true' deletes all rows")
        return self._deleted(delete_where(self._reader, bound, schema))

    def delete_rows(self, offsets: Iterable[int]) -> FragmentMetadata | None:
        """Delete rows by physical offset without committing: new metadata, or None if no row is left."""
        rows = np.unique(row_numbers(list(offsets)))
        if len(rows) and rows[-1] >= self._reader.physical_rows:
            raise InvalidInputError(f"offset {rows[-1]} is out of range: {self._reader.physical_rows} physical rows")
        return self._deleted(np.setdiff1d(rows, self._reader.deletions))

    def _deleted(self, rows: Any) -> FragmentMetadata | None:
        if len(rows) == 0:
            return self.metadata
        dataset = self._dataset
        fragment = delete_offsets(dataset._store, dataset._root, self._reader, rows, dataset.version)
        return None if fragment is None else FragmentMetadata.from_fragment(fragment)

    # -- changing columns ----------------------------------------------------------------------------------------

    def merge(
        self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Add the columns of another table by a left outer join, without committing.

        Parameters and errors are those of `LanceDataset.merge`.

        Returns
        -------
        fragment : FragmentMetadata
            This fragment with a data file more.
        schema : LanceSchema
            The schema with the new columns. Both are for `LanceOperation.Merge`, with the other fragments.
        """
        check_keys(left_on, right_on)
        with RightSide(data_obj, left_on if right_on is None else right_on, schema) as right:
            transform = JoinTransform(self._dataset, left_on, right)
            fragment, made = fragment_with_columns(self._dataset, self._reader, transform)
        return fragment, LanceSchema(made)

    def merge_columns(
        self,
        value_func: Any,
        columns: Sequence[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Add columns without committing; several processes may do so for fragments of one version.

        Parameters
        ----------
        value_func
            As for `LanceDataset.add_columns`, but no columns of nulls, and no checkpoint file. Data has a row for each
            row of this fragment.
        columns
            Columns that a function gets, ``_rowid`` and ``_rowaddr`` included; None for all columns.
        batch_size
            Rows of a batch, 1024 by default for functions.
        reader_schema
            Schema of an iterable of record batches.

        Returns
        -------
        fragment : FragmentMetadata
            This fragment with a data file more.
        schema : LanceSchema
            The schema with the new columns; their field ids are the same for all fragments of the version. Both are for
            `LanceOperation.Merge`, with the other fragments.

        Raises
        ------
        InvalidInputError
            See `LanceDataset.add_columns`; or a UDF with a checkpoint file.
        """
        fragment, made = merged_fragment(self._dataset, self._reader, value_func, columns, reader_schema, batch_size)
        return fragment, LanceSchema(made)

    def update_columns(
        self,
        data_obj: Any,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> tuple[FragmentMetadata, list[int]] | tuple[FragmentMetadata, list[int], bytes]:
        """Replace values of columns of this fragment, found by key, without committing that.

        Rows whose key the data do not have keep their values; of several rows with one key the last one counts. A null
        key matches a null key. What is returned goes into a `LanceOperation.Update` with
        ``update_mode="rewrite_columns"``.

        Parameters
        ----------
        data_obj
            New values, of any kind that `write_dataset` accepts: a key, and columns that the dataset has.
        left_on
            Key column of the dataset, ``_rowid`` or ``_rowaddr``.
        right_on
            Key column of the data, by default of the same name. It is not updated itself.
        schema
            Schema of the data where they have none of their own.
        with_offsets
            Also return which rows changed, which keeps the versions of the others where row ids are stable.

        Returns
        -------
        metadata : FragmentMetadata
            The fragment with a new data file.
        fields_modified : list of int
            Ids of the fields that were written anew.
        offsets : bytes
            With `with_offsets`: physical offsets of the changed rows as a roaring bitmap, for
            ``updated_fragment_offsets``.

        Raises
        ------
        FieldNotFoundError
            A column that the dataset, or the data, does not have.
        InvalidInputError
            No data, no column besides the key, or keys of another type.
        SchemaError
            Values of another type, or null where they must not be.
        """
        made = update_columns(self._dataset, self._reader, data_obj, left_on, right_on, schema)
        metadata = FragmentMetadata.from_fragment(made.fragment)
        if with_offsets:
            return metadata, list(made.fields_modified), made.offsets
        return metadata, list(made.fields_modified)

    # -- creating ------------------------------------------------------------------------------------------------

    @staticmethod
    def create_from_file(filename: str, dataset: LanceDataset, fragment_id: int) -> FragmentMetadata:
        """Describe a fragment made of a data file that exists, without committing it.

        Parameters
        ----------
        filename
            The file, below the data folder of the dataset. It has the columns of the dataset, found by name; nullable
            ones may be missing.
        dataset
            The dataset.
        fragment_id
            Id of the fragment.

        Raises
        ------
        SchemaError, UnsupportedError, MissingFileError, CorruptFileError
            As for `DataFile.create`; or a column that must not be null is missing.
        """
        check_count("fragment_id", fragment_id)
        return FragmentMetadata.from_fragment(existing_fragment(dataset, filename, fragment_id))

    @staticmethod
    def create(
        dataset_uri: str | Path,
        data: Any,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int = DEFAULT_MAX_ROWS_PER_GROUP,
        progress: Any = None,
        mode: str = "append",
        *,
        data_storage_version: str | None = None,
        use_legacy_format: bool | None = None,
        storage_options: Mapping[str, str] | None = None,
        namespace_client: Any = None,
        table_id: Any = None,
        session: Session | None = None,
    ) -> FragmentMetadata:
        """Write data as one fragment without committing it.

        Raises
        ------
        InvalidInputError
            There is no data.
        """
        written = write_fragments(
            data,
            dataset_uri,
            schema,
            mode=mode,
            max_rows_per_file=2**62,
            max_rows_per_group=max_rows_per_group,
            max_bytes_per_file=2**62,
            progress=progress,
            data_storage_version=data_storage_version,
            use_legacy_format=use_legacy_format,
            storage_options=storage_options,
            namespace_client=namespace_client,
            table_id=table_id,
            session=session,
        )
        if not written:
            raise InvalidInputError("a fragment needs at least one row")
        assert isinstance(written, list)
        metadata = written[0]
        metadata.id = fragment_id or 0
        return metadata
