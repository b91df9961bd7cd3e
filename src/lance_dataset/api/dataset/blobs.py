"""Access to values of blob columns: as files, as bytes, or in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from lance_dataset.api.blob import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
from lance_dataset.errors import InvalidInputError
from lance_dataset.read.shown import Shown
from lance_dataset.read.take import RowNumbers

__all__ = ["BlobAccess"]

_SELECTORS = ("ids", "addresses", "indices")


class BlobAccess(Shown):
    """Access to values of blob columns."""

    def take_blobs(
        self,
        blob_column: str,
        ids: RowNumbers | None = None,
        addresses: RowNumbers | None = None,
        indices: RowNumbers | None = None,
        *,
        buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE,
    ) -> list[BlobFile | None]:
        """Return values of a blob column as files, which are read on demand; None for nulls.

        Parameters
        ----------
        blob_column
            Name of the column, dotted inside structs.
        ids, addresses, indices
            Row ids, row addresses, or row numbers of the rows, in the order of the result. Give exactly one of them.
        buffer_size
            Number of bytes that a file reads ahead if that saves requests.

        Raises
        ------
        FieldNotFoundError
            The column does not exist.
        InvalidInputError
            The column is not a blob column, not exactly one of `ids`, `addresses` and `indices` is given, or a row does
            not exist.
        UnsupportedError
            A row is deleted.
        """
        from lance_dataset.read.blobs import select_blobs

        reader = self.snapshot.reader
        _, blobs = select_blobs(reader, blob_column, ids=ids, addresses=addresses, indices=indices)
        return [None if blob is None else BlobFile(blob, buffer_size, limit=reader.limit) for blob in blobs]

    def read_blobs(
        self,
        blob_column: str,
        ids: RowNumbers | None = None,
        addresses: RowNumbers | None = None,
        indices: RowNumbers | None = None,
        *,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, bytes | None]]:
        """Read values of a blob column: row address and bytes of each, None for nulls.

        Other parameters and errors are those of `take_blobs`.

        Parameters
        ----------
        io_buffer_size, preserve_order
            Accepted for compatibility. Values are always in the order of the rows given.
        """
        from lance_dataset.read.blobs import read_blob_values, select_blobs

        _check_buffer(io_buffer_size)
        reader = self.snapshot.reader
        rows, blobs = select_blobs(reader, blob_column, ids=ids, addresses=addresses, indices=indices)
        return list(zip(rows, read_blob_values(blobs, reader.limit), strict=True))

    def read_blob_ranges(
        self,
        blob_column: str,
        requests: Sequence[tuple[int, int, int]],
        *,
        selector: Literal["ids", "addresses", "indices"],
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, int, bytes | None]]:
        """Read parts of values of a blob column.

        Parameters
        ----------
        requests
            Row, offset in the value and length in bytes of each part.
        selector
            Meaning of the rows in `requests`: ``ids``, ``addresses`` or ``indices``.
        io_buffer_size, preserve_order
            Accepted for compatibility. Parts are always in the order of `requests`.

        Returns
        -------
        list of tuple
            Position of the request, row address, and the bytes, or None for a null.

        Raises
        ------
        InvalidInputError
            A part is not inside its value. Other errors are those of `take_blobs`.
        """
        from lance_dataset.read.blobs import read_blob_values, select_blobs

        if selector not in _SELECTORS:
            raise InvalidInputError(f"selector must be one of 'ids', 'addresses', or 'indices', got {selector!r}")
        _check_buffer(io_buffer_size)
        chosen: dict[str, Any] = {selector: [row for row, _, _ in requests]}
        reader = self.snapshot.reader
        rows, blobs = select_blobs(reader, blob_column, **chosen)
        parts = [
            None if blob is None else blob.part(offset, length)
            for blob, (_, offset, length) in zip(blobs, requests, strict=True)
        ]
        return list(zip(range(len(parts)), rows, read_blob_values(parts, reader.limit), strict=True))


def _check_buffer(io_buffer_size: int | None) -> None:
    if io_buffer_size is not None and io_buffer_size < 1:
        raise InvalidInputError(f"io_buffer_size must be greater than 0, got {io_buffer_size}")
