"""Reading one version of a table: its fragments and the numbering of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.column import ColumnReader
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.schema import Field
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.paths import FileLocator

__all__ = ["TableReader"]


class TableReader:
    """An open version of a table; fragments are opened when they are read and stay open.

    Parameters
    ----------
    locator
        Finds the files.
    manifest
        The version.
    elsewhere
        See `FragmentReader`.
    """

    def __init__(
        self,
        locator: FileLocator,
        manifest: Manifest,
        elsewhere: Callable[[Field, NDArray[np.uint64]], ColumnReader | None] | None = None,
    ) -> None:
        self.locator = locator
        self.manifest = manifest
        self.elsewhere = elsewhere

    @cached_property
    def fragments(self) -> Sequence[FragmentReader]:
        """One reader per fragment, in scan order."""
        readers: list[FragmentReader] = []
        for fragment in self.manifest.fragments:
            readers.append(FragmentReader(self.locator, fragment, readers[-1] if readers else None, self.elsewhere))
        return readers

    @cached_property
    def live_starts(self) -> NDArray[np.int64]:
        """Number of live rows before each fragment, then the total."""
        counts = [reader.num_rows for reader in self.fragments]
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])

    @property
    def num_rows(self) -> int:
        """Live rows of the version."""
        return int(self.live_starts[-1])
