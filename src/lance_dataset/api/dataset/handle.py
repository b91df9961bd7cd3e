"""Store, session and representation of a dataset."""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from lance_dataset.api.display import dataset_html, dataset_text
from lance_dataset.io.statistics import IOStats
from lance_dataset.read.session import Session
from lance_dataset.read.shown import Shown
from lance_dataset.table.base_access import without_base_params

if TYPE_CHECKING:
    from lance_dataset.file.session import LanceFileSession

__all__ = ["Handle", "Viewer", "name_methods"]


class Viewer(Protocol):
    """A page that shows a dataset: `lance_dataset.viewer.Viewer`."""

    @property
    def url(self) -> str:
        """Address of the page, with the token that it needs."""

    def close(self) -> None:
        """Stop serving."""

    def __enter__(self) -> Viewer: ...

    def __exit__(self, *raised: object) -> None: ...


class Handle(Shown):
    """Store, session and representation of a dataset."""

    def __repr__(self) -> str:
        return dataset_text(self.snapshot.uri, self.snapshot.manifest)

    def _repr_html_(self) -> str:
        return dataset_html(self.snapshot)

    def view(self, *, host: str = "127.0.0.1", port: int = 0) -> Viewer:
        """Show the dataset in a page of this machine; as the last value of a notebook's cell, inside the notebook.

        Parameters
        ----------
        host
            Address to listen at. The default is for this machine only.
        port
            Port; 0 for any that is free.

        Returns
        -------
        lance_dataset.viewer.Viewer
            The page, which a thread serves until its ``close()``.

        Raises
        ------
        UnsupportedError
            The extra ``viewer`` is not installed.
        InvalidInputError
            The address cannot be listened at.
        """
        # The page is built on the public face of the package, so it is above this module and found by its name.
        viewer = import_module("lance_dataset.viewer")
        shown: Viewer = viewer.view(self, host=host, port=port)
        return shown

    @property
    def initial_storage_options(self) -> dict[str, str] | None:
        """Storage options given when the dataset was opened."""
        return without_base_params(self.snapshot.location.storage_options) or None

    def latest_storage_options(self) -> dict[str, str] | None:
        """Return the current storage options: those given at open, since this release has no provider to renew them."""
        return self.initial_storage_options

    @property
    def storage_options_accessor(self) -> None:
        """Provider that renews storage options. Always None, since this release has no such providers."""
        return None

    def session(self) -> Session:
        """Return the session."""
        return self.snapshot.session

    def new_file_session(self) -> LanceFileSession:
        """Return a session for files below the folder of the dataset, which may be of any format."""
        from lance_dataset.file.session import LanceFileSession

        return LanceFileSession(self.snapshot.uri, self.latest_storage_options())

    def io_stats_snapshot(self) -> IOStats:
        """Return I/O counts since the store was opened, or since the last call of `io_stats_incremental`.

        Datasets of one session that lie in the same store share its counts.

        Returns
        -------
        IOStats
            Has ``read_iops``, ``read_bytes``, ``write_iops`` and ``written_bytes``.
        """
        return self.snapshot.store.statistics.snapshot()

    def io_stats_incremental(self) -> IOStats:
        """Return I/O counts like `io_stats_snapshot`, and reset them to zero."""
        return self.snapshot.store.statistics.incremental()

    def remap_row_addrs(self, addrs: pa.Array) -> pa.Array | None:
        """Map old row addresses to current ones, for fragments that a compaction rewrote without remapping indices.

        Parameters
        ----------
        addrs
            Row addresses (uint64).

        Returns
        -------
        pyarrow.Array or None
            The current addresses, null for deleted rows. None if the dataset has no record of such rewrites (no
            fragment-reuse index).

        Raises
        ------
        TypeError
            `addrs` is not an array of uint64.
        CorruptFileError
            The fragment-reuse index is malformed.
        """
        from lance_dataset.table.indices.reuse import find_reuse_index, relocation

        if not isinstance(addrs, pa.Array):
            raise TypeError(f"addrs must be a pyarrow.Array, not {type(addrs).__name__}")
        if addrs.type != pa.uint64():
            raise TypeError(f"addrs must be row addresses (uint64), not {addrs.type}")
        index = find_reuse_index(self.snapshot.manifest)
        if index is None:
            return None
        given = addrs.is_null().to_numpy(zero_copy_only=False)
        moved, gone = relocation(index, self.snapshot.reader.locator).locate(addrs.fill_null(0).to_numpy())
        return pa.array(moved, pa.uint64(), mask=gone | given)


def name_methods(kind: type, parts: tuple[type, ...]) -> None:
    """Name the methods that a class has from its parts like its own. Python's errors and tracebacks show the names."""
    for part in parts:
        for name, value in vars(part).items():
            function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            if isinstance(function, FunctionType):
                function.__qualname__ = f"{kind.__name__}.{name}"
