"""Session that takes rows of one fragment repeatedly."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import with_blob_values
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.take import RowNumbers, take_fragment_numbers

__all__ = ["FragmentSession"]


class FragmentSession:
    """Session that takes rows of one fragment repeatedly. `LanceFragment.open_session` opens it.

    Columns are looked up only once.

    Parameters
    ----------
    snapshot, fragment
        The open version, and a reader of one of its fragments.
    columns
        Names of the columns; None for all.
    with_row_address
        Append ``_rowaddr``.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        fragment: FragmentReader,
        columns: Sequence[str] | None = None,
        with_row_address: bool | None = None,
    ) -> None:
        self._fragment = fragment
        self._schema = snapshot.scanned_schema
        names = list(snapshot.manifest.schema.arrow.names if columns is None else columns)
        if with_row_address and "_rowaddr" not in names:
            names.append("_rowaddr")
        self._projection = with_blob_values(snapshot.projection(names))

    def __repr__(self) -> str:
        return f"FragmentSession(fragment={self._fragment.fragment.id}, columns={self._projection.user_schema.names})"

    def take(self, indices: RowNumbers) -> pa.Table:
        """Take rows by number among the live rows of the fragment, in the order given; repeats are kept.

        Raises
        ------
        RowIndexError
            A row number is outside the fragment.
        """
        return take_fragment_numbers(self._fragment, indices, self._projection, self._schema)
