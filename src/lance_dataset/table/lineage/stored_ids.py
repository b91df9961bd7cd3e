"""Row ids in the messages of fragments, located and decoded for all fragments together."""

from __future__ import annotations

import numpy as np

from lance_dataset._proto import rowids_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import check_memory
from lance_dataset.table.fragment_list import FragmentList
from lance_dataset.table.lineage.id_pieces import FEW, IdPieces, IdRuns, Whole
from lance_dataset.table.lineage.plain_ids import PlainIds
from lance_dataset.table.lineage.segments import decode_segment
from lance_dataset.table.messages import Numbers, locate_records, parse_message
from lance_dataset.table.row_addresses import first_addresses
from lancecodec import records, row_ids
from lancecodec.errors import CodecError

__all__ = ["StoredIds"]

_WHERE = "row ids of the manifest"
#: Limited memory of a run, and of a segment that stays whole. A run takes three times as much, so that there may be one
#: for every two bytes, as in an array of ids in no order, but not one for every second bit, as in a bitmap.
_RUN_MEMORY = 8
_WHOLE_MEMORY = 500
# Field numbers of the messages.
_FRAGMENT_ROW_IDS = 5
_SEQUENCE_SEGMENTS = 1
_SEGMENT_COLUMNS = np.array(
    [
        (1, 1, records.LAST, 0),  # start of a range
        (1, 2, records.LAST, 0),  # its end
        (1, 0, records.COUNT, 0),
        *((kind, 0, records.COUNT, 0) for kind in (2, 3, 4, 5)),
    ],
    np.int64,
)


@dataclass(frozen=True, eq=False)
class StoredIds:
    """Sequences of row ids that are not decoded yet.

    Attributes
    ----------
    data
        Messages of the fragments.
    fragment_ids
        int64[n], ascending.
    rows
        int64[n]: number of rows of each, at least 1.
    starts, ends
        int64[n]: byte range of each sequence.
    """

    data: bytes
    fragment_ids: Numbers
    rows: Numbers
    starts: Numbers
    ends: Numbers

    @classmethod
    def of(cls, fragments: FragmentList) -> StoredIds:
        """Locate the sequences of a list. Those of unusual or damaged messages are left out."""
        columns = fragments.columns
        try:
            owners, starts, ends = fragments.locate(_FRAGMENT_ROW_IDS)
        except CorruptFileError:  # the decoder of the broken message reports which one it is
            owners = starts = ends = np.empty(0, np.int64)
        ids = columns.ids[owners]
        order = np.argsort(ids, kind="stable")
        order = order[columns.has_inline_row_ids[owners[order]] & (columns.physical_rows[owners[order]] > 0)]
        return cls(fragments.data, ids[order], columns.physical_rows[owners[order]], starts[order], ends[order])

    def __len__(self) -> int:
        return len(self.fragment_ids)

    def __getitem__(self, position: int) -> bytes:
        """Return one sequence."""
        return self.data[int(self.starts[position]) : int(self.ends[position])]

    def of_fragments(self, fragment_ids: Numbers) -> StoredIds:
        """Return the sequences of some fragments."""
        chosen = np.isin(self.fragment_ids, fragment_ids)
        members = (each[chosen] for each in (self.fragment_ids, self.rows, self.starts, self.ends))
        return StoredIds(self.data, *members)

    def plain(self) -> PlainIds:
        """Return the fragments whose row ids are one range that matches their number of rows."""
        try:
            owners, _, starts, ends = locate_records(
                self.data, (self.starts, self.ends), _SEQUENCE_SEGMENTS, _WHERE, per_record=100
            )
            columns = np.empty((len(_SEGMENT_COLUMNS), len(starts)), np.int64)
            records.columns(self.data, starts, ends, _SEGMENT_COLUMNS, columns)
        except (CorruptFileError, CodecError):  # reported as above
            return PlainIds.none()
        alone = np.bincount(owners, minlength=1)[owners] == 1
        alone &= (columns[2] == 1) & (columns[3:].sum(axis=0) == 0)
        first, stop = columns[0].view(np.uint64), columns[1].view(np.uint64)
        alone &= (stop > first) & (stop - first == self.rows[owners].astype(np.uint64))
        return PlainIds(self.fragment_ids[owners[alone]], first[alone], stop[alone] - np.uint64(1))

    def pieces(self) -> IdPieces | None:
        """Decode the sequences; None if one of them is damaged or unusual."""
        bases = first_addresses(self.fragment_ids)
        sequences = (self.data, self.starts, self.ends, self.rows, bases, FEW)
        none = IdRuns.none()
        try:
            room, others = row_ids.split(
                *sequences, none.first, none.lengths, none.addresses, np.empty((4, 0), np.int64)
            )
            needed = _RUN_MEMORY * room + _WHOLE_MEMORY * others
            check_memory(needed, len(self.data), f"{_WHERE}: a list of {room:,} runs and {others:,} segments")
            runs = IdRuns(np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.uint64))
            wholes = np.empty((4, others), np.int64)
            row_ids.split(*sequences, runs.first, runs.lengths, runs.addresses, wholes)
        except CodecError:
            return None
        return IdPieces(runs, tuple(self._whole(*place) for place in wholes.T.tolist()))

    def _whole(self, position: int, offset: int, start: int, end: int) -> Whole:
        fragment_id, where = int(self.fragment_ids[position]), f"fragment {self.fragment_ids[position]}"
        message = parse_message(rowids_pb2.U64Segment, self.data[start:end], f"{where}: row ids")
        return Whole(fragment_id, offset, decode_segment(message, int(self.rows[position]) - offset, where))
