"""Overlay files as listed in manifests and transactions, and the cells for which they have values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_dataset._proto import table_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import check_memory
from lance_dataset.table.fragment import DataFile
from lance_dataset.table.messages import parse_message
from lance_dataset.table.roaring import decode_bitmap

__all__ = ["Overlay"]

#: Limits the memory that a small bitmap can expand to. Offsets are less than the number of rows of a fragment.
_MAX_ROWS = 1 << 28


@dataclass(frozen=True)
class Overlay:
    """Values for some cells of a fragment.

    Attributes
    ----------
    file
        File with a column for each of its fields.
    offsets
        For each of these fields, the offsets of the rows with values, ascending.
    committed_version
        Version that added it, 0 before its commit.
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
            It is not an overlay message, or does not state the rows for which it has values.
        MemoryLimitError
            It has values for too many rows.
        """
        overlay = parse_message(table_pb2.DataOverlayFile, message, "overlay file")
        file = DataFile.from_proto(overlay.data_file)
        where = f"overlay file {file.path!r}"
        coverage = overlay.WhichOneof("coverage")
        if coverage == "shared_offset_bitmap":
            bitmaps = [overlay.shared_offset_bitmap]
        elif coverage == "field_coverage":
            bitmaps = list(overlay.field_coverage.offset_bitmaps)
        else:
            raise CorruptFileError(f"{where}: does not state the rows for which it has values")
        shared = coverage == "shared_offset_bitmap"
        if not shared and len(bitmaps) != len(file.fields):
            raise CorruptFileError(f"{where}: has {len(bitmaps)} bitmaps for {len(file.fields)} fields")
        offsets: list[npt.NDArray[np.uint32]] = []
        for bitmap in bitmaps:
            offsets.append(decode_bitmap(bitmap, _MAX_ROWS, where))
            check_memory(sum(rows.nbytes for rows in offsets), len(message), f"{where}: its bitmaps")
        return cls(file, tuple(offsets * len(file.fields) if shared else offsets), overlay.committed_version)

    @property
    def live_fields(self) -> frozenset[int]:
        """Ids of the fields that it has values for. -2 marks a superseded field, which is left out."""
        return frozenset(field_id for field_id in self.file.fields if field_id >= 0)

    def covers_any(self, rows: npt.NDArray[np.uint32] | None) -> bool:
        """Return True if it has a value for one of these offsets, or if they are unknown (None)."""
        if rows is None:
            return True
        live = (rows_of for field, rows_of in zip(self.file.fields, self.offsets, strict=True) if field >= 0)
        return any(bool(np.isin(rows_of, rows).any()) for rows_of in live)
