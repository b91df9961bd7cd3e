"""Scans of a fragment, and rows taken by their number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.api.scannable import ScannableFragment
from lance_dataset.api.scanner.builder import make_scanner
from lance_dataset.api.scanner.progress import ProgressOption
from lance_dataset.api.scanner.scanner import BlobMode, LanceScanner
from lance_dataset.arguments import given
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import with_blob_values
from lance_dataset.read.snapshot import Columns, Snapshot
from lance_dataset.read.take import RowNumbers, take_fragment_numbers
from lance_dataset.scan.options import BlobHandling, ColumnOrdering, check_arrow_options

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FragmentReading", "FragmentSession"]

Predicate: TypeAlias = "str | pc.Expression"


class FragmentReading(ScannableFragment):
    """Rows of a fragment."""

    _snapshot: Snapshot
    _fragment_id: int

    @property
    def fragment_id(self) -> int:
        """Id of the fragment."""
        return self._fragment_id

    @property
    @abstractmethod
    def _reader(self) -> FragmentReader: ...

    def count_rows(
        self, filter: str | pc.Expression | None = None, *, progress: ProgressOption = None, **kwargs: Any
    ) -> int:
        """Count the live rows, or those that a filter keeps. `progress` is as for `LanceDataset.count_rows`."""
        if filter is None and not kwargs:
            return self._reader.num_rows
        return self.scanner(columns=[], filter=filter, **kwargs).count_rows(progress=progress)

    def scanner(
        self,
        columns: Columns = None,
        filter: Predicate | None = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling: BlobHandling | None = None,
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
        """Make a scanner of this fragment.

        Parameters
        ----------
        columns, filter, limit, ...
            As for `LanceDataset.scanner`.
        row_range
            Physical row offsets ``[start, stop)`` to read; None for all.
        """
        options = {
            "columns": columns,
            "fragments": [self],
            "filter": filter,
            "limit": limit,
            "offset": offset,
            "with_row_id": with_row_id,
            "with_row_address": with_row_address,
            "blob_handling": blob_handling,
            "order_by": order_by,
            "use_scalar_index": use_scalar_index,
            "io_buffer_size": io_buffer_size,
            "late_materialization": late_materialization,
            "include_deleted_rows": include_deleted_rows,
            "batch_size_bytes": batch_size_bytes,
            "strict_batch_size": strict_batch_size,
            "batch_size": batch_size,
            "batch_readahead": batch_readahead,
            "row_range": row_range,
        }
        check_arrow_options(arrow_options)
        return make_scanner(self._snapshot, options, with_defaults=False)

    def to_table(
        self,
        columns: Columns = None,
        filter: Predicate | None = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling: BlobHandling | None = None,
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
        progress: ProgressOption = None,
        **arrow_options: Any,
    ) -> pa.Table:
        """Scan into a table. Parameters are those of `scanner`; `progress` is as for `LanceScanner.to_table`."""
        return self.scanner(
            **given(
                columns=columns,
                filter=filter,
                limit=limit,
                offset=offset,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                blob_handling=blob_handling,
                order_by=order_by,
                use_scalar_index=use_scalar_index,
                io_buffer_size=io_buffer_size,
                late_materialization=late_materialization,
                include_deleted_rows=include_deleted_rows,
                batch_size_bytes=batch_size_bytes,
                strict_batch_size=strict_batch_size,
                batch_size=batch_size,
                batch_readahead=batch_readahead,
                row_range=row_range,
            ),
            **arrow_options,
        ).to_table(progress=progress)

    def to_batches(
        self,
        columns: Columns = None,
        filter: Predicate | None = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling: BlobHandling | None = None,
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
        progress: ProgressOption = None,
        **arrow_options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Scan into a stream of record batches. Parameters are those of `to_table`."""
        return self.scanner(
            **given(
                columns=columns,
                filter=filter,
                limit=limit,
                offset=offset,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                blob_handling=blob_handling,
                order_by=order_by,
                use_scalar_index=use_scalar_index,
                io_buffer_size=io_buffer_size,
                late_materialization=late_materialization,
                include_deleted_rows=include_deleted_rows,
                batch_size_bytes=batch_size_bytes,
                strict_batch_size=strict_batch_size,
                batch_size=batch_size,
                batch_readahead=batch_readahead,
                row_range=row_range,
            ),
            **arrow_options,
        ).to_batches(progress=progress)

    def to_pandas(
        self,
        columns: Columns = None,
        filter: Predicate | None = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling: BlobHandling | None = None,
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
        blob_mode: BlobMode = "lazy",
        progress: ProgressOption = None,
        **kwargs: Any,
    ) -> pd.DataFrame:
        """Scan into a DataFrame. Parameters are those of `scanner` and `LanceScanner.to_pandas`."""
        return self.scanner(
            **given(
                columns=columns,
                filter=filter,
                limit=limit,
                offset=offset,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                blob_handling=blob_handling,
                order_by=order_by,
                use_scalar_index=use_scalar_index,
                io_buffer_size=io_buffer_size,
                late_materialization=late_materialization,
                include_deleted_rows=include_deleted_rows,
                batch_size_bytes=batch_size_bytes,
                strict_batch_size=strict_batch_size,
                batch_size=batch_size,
                batch_readahead=batch_readahead,
                row_range=row_range,
            ),
        ).to_pandas(blob_mode=blob_mode, progress=progress, **kwargs)

    def take(self, indices: RowNumbers, columns: Columns = None, **kwargs: Any) -> pa.Table:
        """Take rows by number among the live rows of the fragment. Blob columns hold their values.

        Raises
        ------
        RowIndexError
            A row number is outside the fragment.
        """
        projection = with_blob_values(self._snapshot.projection(columns))
        return take_fragment_numbers(self._reader, indices, projection, self._snapshot.scanned_schema)

    def open_session(
        self, columns: Sequence[str] | None = None, with_row_address: bool | None = None
    ) -> FragmentSession:
        """Open a session that takes rows of this fragment repeatedly. Columns are looked up and opened only once.

        Parameters
        ----------
        columns
            As for `take`.
        with_row_address
            Append ``_rowaddr``.

        Raises
        ------
        FieldNotFoundError
            A column does not exist.
        """
        if isinstance(columns, str | Mapping):
            raise TypeError(f"columns must be a list of names, not {type(columns).__name__}")
        return FragmentSession(self, columns, with_row_address)


class FragmentSession:
    """Session that takes rows of one fragment repeatedly. `LanceFragment.open_session` opens it.

    Columns are looked up only once.

    Parameters
    ----------
    fragment
        Handle on the fragment.
    columns
        Names of the columns; None for all.
    with_row_address
        Append ``_rowaddr``.
    """

    def __init__(
        self, fragment: FragmentReading, columns: Sequence[str] | None = None, with_row_address: bool | None = None
    ) -> None:
        snapshot = fragment._snapshot
        names = list(snapshot.manifest.schema.arrow.names if columns is None else columns)
        if with_row_address and "_rowaddr" not in names:
            names.append("_rowaddr")
        self._fragment = fragment
        self._projection = with_blob_values(snapshot.projection(names))

    def __repr__(self) -> str:
        return f"FragmentSession(fragment={self._fragment.fragment_id}, columns={self._projection.user_schema.names})"

    def take(self, indices: RowNumbers) -> pa.Table:
        """Take rows by number among the live rows of the fragment, in the order given; repeats are kept.

        Raises
        ------
        RowIndexError
            A row number is outside the fragment.
        """
        schema = self._fragment._snapshot.scanned_schema
        return take_fragment_numbers(self._fragment._reader, indices, self._projection, schema)
