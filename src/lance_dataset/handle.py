"""What a handle on a dataset knows besides the version: its store and session, and how it shows itself."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.display import dataset_html, dataset_text
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.statistics import IOStats
from lance_dataset.query.table_reader import TableReader
from lance_dataset.session import Session
from lance_dataset.table.indices.reuse import find_reuse_index, relocation
from lance_dataset.table.manifest import Manifest

__all__ = ["Handle"]


class Handle:
    """What datasets offer that is not in the table."""

    _uri: str
    _manifest: Manifest
    _store: ObjectStore
    _session: Session
    _reader: TableReader
    _storage_options: dict[str, str]

    def __repr__(self) -> str:
        return dataset_text(self._uri, self._manifest)

    def _repr_html_(self) -> str:
        return dataset_html(self._uri, self._manifest)

    @property
    def initial_storage_options(self) -> dict[str, str] | None:
        """Storage options given at open."""
        return dict(self._storage_options) or None

    def latest_storage_options(self) -> dict[str, str] | None:
        """Storage options in use: those given at open, as this release has no provider that renews them."""
        return self.initial_storage_options

    @property
    def storage_options_accessor(self) -> None:
        """What renews storage options: nothing, as this release has no providers for that."""
        return None

    def session(self) -> Session:
        """The session."""
        return self._session

    def io_stats_snapshot(self) -> IOStats:
        """What was read and written since the store was opened, or since the last call of `io_stats_incremental`.

        The store is that of the session: other datasets of the session that lie in it count too.

        Returns
        -------
        IOStats
            With ``read_iops``, ``read_bytes``, ``write_iops`` and ``written_bytes``.
        """
        return self._store.statistics.snapshot()

    def io_stats_incremental(self) -> IOStats:
        """The same as `io_stats_snapshot`, and counting starts again from nothing."""
        return self._store.statistics.incremental()

    def remap_row_addrs(self, addrs: pa.Array) -> pa.Array | None:
        """Where rows are whose fragments were rewritten while indices were left as they were.

        Parameters
        ----------
        addrs
            Row addresses.

        Returns
        -------
        pyarrow.Array or None
            The addresses now, null for rows that were deleted; None where the dataset has no list of such rewrites (a
            fragment-reuse index).

        Raises
        ------
        TypeError
            `addrs` is no array of uint64.
        CorruptFileError
            The list contradicts the format.
        """
        if not isinstance(addrs, pa.Array):
            raise TypeError(f"addrs must be a pyarrow.Array, not {type(addrs).__name__}")
        if addrs.type != pa.uint64():
            raise TypeError(f"addrs must be row addresses (uint64), not {addrs.type}")
        index = find_reuse_index(self._manifest)
        if index is None:
            return None
        given = addrs.is_null().to_numpy(zero_copy_only=False)
        moved, gone = relocation(index, self._reader.locator).locate(addrs.fill_null(0).to_numpy())
        return pa.array(moved, pa.uint64(), mask=gone | given)
