"""Takes from one fragment again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_dataset.query.projection import with_blob_values

if TYPE_CHECKING:
    from lance_dataset.fragment import LanceFragment

__all__ = ["FragmentSession"]


class FragmentSession:
    """Takes rows of one fragment, of columns that are looked up once. Made by `LanceFragment.open_session`.

    Parameters
    ----------
    fragment
        The fragment.
    columns
        Names; None for all.
    with_row_address
        Append ``_rowaddr``.
    """

    def __init__(
        self, fragment: LanceFragment, columns: Sequence[str] | None = None, with_row_address: bool | None = None
    ) -> None:
        dataset = fragment._dataset
        self._fragment = fragment
        self._schema = dataset._scanned_schema
        names = list(dataset._manifest.schema.arrow.names if columns is None else columns)
        if with_row_address and "_rowaddr" not in names:
            names.append("_rowaddr")
        self._projection = with_blob_values(dataset._take_projection(names))

    def __repr__(self) -> str:
        return f"FragmentSession(fragment={self._fragment.fragment_id}, columns={self._projection.user_schema.names})"

    def take(self, indices: Sequence[int] | pa.Array) -> pa.Table:
        """Rows by their number among the live rows of the fragment, in the order asked, repeats kept.

        Raises
        ------
        RowIndexError
            A number outside the fragment.
        """
        return self._fragment._taken(indices, self._projection, self._schema)
