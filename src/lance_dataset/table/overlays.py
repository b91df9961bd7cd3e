"""Overlay files as a manifest and a transaction list them: which cells they give new values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_dataset._proto import table_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.table.fragment import DataFile
from lance_dataset.table.messages import parse_message
from lance_dataset.table.roaring import decode_bitmap

__all__ = ["Overlay"]

#: Bounds what a bitmap of a few bytes can make of itself: offsets are below the rows of a fragment.
_MAX_ROWS = 1 << 28


@dataclass(frozen=True)
class Overlay:
    """Values for some cells of a fragment.

    Attributes
    ----------
    file
        Holds a column for each of its fields.
    offsets
        For each of these fields the offsets of the rows it has values for, ascending.
    committed_version
        Version that brought it, 0 before its commit.
    """

    file: DataFile
    offsets: tuple[npt.NDArray[np.uint32], ...]
    committed_version: int = 0

    @classmethod
    def decode(cls, message: bytes) -> Overlay:
        """Read a serialized message.

        Raises
        ------
        CorruptFileError
            It is none, or does not say for which rows it has values.
        """
        overlay = parse_message(table_pb2.DataOverlayFile, message, "overlay file")
        file = DataFile.from_proto(overlay.data_file)
        where = f"overlay file {file.path!r}"
        coverage = overlay.WhichOneof("coverage")
        if coverage == "shared_offset_bitmap":
            bitmaps = [overlay.shared_offset_bitmap] * len(file.fields)
        elif coverage == "field_coverage":
            bitmaps = list(overlay.field_coverage.offset_bitmaps)
        else:
            raise CorruptFileError(f"{where}: does not say for which rows it has values")
        if len(bitmaps) != len(file.fields):
            raise CorruptFileError(f"{where}: has {len(bitmaps)} bitmaps for {len(file.fields)} fields")
        offsets = tuple(decode_bitmap(bitmap, _MAX_ROWS, where) for bitmap in bitmaps)
        return cls(file, offsets, overlay.committed_version)

    @property
    def live_fields(self) -> frozenset[int]:
        """Ids of the fields that it has values for; -2 marks one that was superseded."""
        return frozenset(field_id for field_id in self.file.fields if field_id >= 0)

    def covers_any(self, rows: npt.NDArray[np.uint32] | None) -> bool:
        """Whether it has a value for one of these offsets; None stands for offsets that are not known."""
        if rows is None:
            return True
        live = (rows_of for field, rows_of in zip(self.file.fields, self.offsets, strict=True) if field >= 0)
        return any(bool(np.isin(rows_of, rows).any()) for rows_of in live)
