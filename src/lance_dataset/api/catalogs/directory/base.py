"""Common base of the parts of a catalog in a folder: the folder, and opening tables."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa

from lance_dataset.api.catalogs.directory.names import check_id
from lance_dataset.api.catalogs.directory.store import CatalogFolder, TablePlace
from lance_dataset.api.catalogs.operation import CountedCatalog, parts_of
from lance_dataset.api.catalogs.packages import errors
from lance_dataset.api.dataset.dataset import LanceDataset
from lance_dataset.api.opening import dataset
from lance_dataset.errors import VersionNotFoundError

__all__ = ["FolderPart", "sent_rows"]


class FolderPart(CountedCatalog):
    """Part of a catalog in a folder."""

    _folder: CatalogFolder

    def _place(self, request: Any) -> TablePlace:
        """Find the table of a request."""
        parts = parts_of(request)
        check_id(parts, "table")
        if len(parts) > 1:
            self._check_entries()
        return self._folder.find(parts)

    def _check_entries(self) -> None:
        if not self._folder.options.has_entries:
            raise errors.UnsupportedOperationError(
                "Not supported: a catalog with manifest_enabled=false has neither namespaces nor tables in them"
            )

    def _open(self, request: Any, version: int | None = None) -> LanceDataset:
        """Open the table of a request, in the branch that it names."""
        place = self._place(request)
        branch = getattr(request, "branch", None)
        shown = dataset(**self._folder.location(place.folder), version=None if branch else version)
        if not branch:
            return shown
        try:
            return shown.checkout_version((branch, version))
        except VersionNotFoundError as error:
            if branch in shown.branches.list():
                raise
            raise errors.TableBranchNotFoundError(
                f"Table branch not found: branch '{branch}' for table '{place.parts[-1]}'"
            ) from error

    def _last_transaction(self, shown: LanceDataset) -> str | None:
        """Return the id of the transaction that made the version of a handle."""
        made = shown.read_transaction(shown.version) if shown.branch is None else None
        return None if made is None else str(made.uuid)


def sent_rows(data: bytes | None, call: str) -> pa.Table:
    """Return the rows of a request, which are a stream of Arrow's IPC format.

    Raises
    ------
    InvalidInputError
        The stream is missing or damaged.
    """
    if not data:
        raise errors.InvalidInputError(f"Invalid input: Request data (Arrow IPC stream) is required for {call}")
    try:
        with pa.ipc.open_stream(io.BytesIO(data)) as reader:
            rows = reader.read_all()
        rows.validate(full=True)
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        raise errors.InvalidInputError(f"Invalid input: Invalid Arrow IPC stream: {error}") from error
    return rows
