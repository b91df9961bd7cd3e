"""Fragments of a version, kept as serialized messages until one is accessed.

A table with many fragments is opened, extended and partly scanned without an object for each fragment. Numbers of all
fragments are available as arrays (`FragmentColumns`). Unchanged fragments are copied from version to version as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, overload

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from lance_dataset._proto import table_pb2
from lance_dataset.errors import CorruptFileError, InvalidInputError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lance_dataset.table.fragment import Fragment, known_storage_version
from lance_dataset.table.messages import (
    Numbers,
    joined_ranges,
    locate_numbers,
    locate_records,
    parse_message,
    whole_range,
)
from lancecodec import records
from lancecodec.errors import CodecError

__all__ = ["FragmentColumns", "FragmentList", "edited"]

# Field numbers of the messages.
_MANIFEST_FRAGMENTS = 2
_FRAGMENT_FILES = 2
_FILE_PATH = 1
_FILE_FIELDS = 2
_FILE_COLUMN_INDICES = 3
_FRAGMENT_COLUMNS = np.array(
    [
        (1, 0, records.LAST, 0),  # id
        (4, 0, records.LAST, 0),  # physical_rows
        (3, 0, records.COUNT, 0),  # deletion_file
        (3, 4, records.LAST, 0),  # its num_deleted_rows
        (3, 7, records.LAST_32, -1),  # its base_id
        (5, 0, records.COUNT, 0),  # inline_row_ids
        (12, 0, records.COUNT, 0),  # column_row_ids
        (13, 0, records.COUNT, 0),  # column_last_updated_at_versions
        (14, 0, records.COUNT, 0),  # column_created_at_versions
        (11, 0, records.COUNT, 0),  # overlays
        (2, 0, records.COUNT, 0),  # files
        (3, 1, records.LAST_32, 0),  # file_type of the deletion file
        (15, 0, records.LAST_32, -1),  # clustering_id
    ],
    np.int64,
)
_FILE_COLUMNS = np.array(
    [
        (4, 0, records.LAST_32, 0),  # file_major_version
        (5, 0, records.LAST_32, 0),  # file_minor_version
        (6, 0, records.LAST, 0),  # file_size_bytes
        (7, 0, records.LAST_32, -1),  # base_id
        (2, 0, records.MAX, -1),  # fields
        (2, 0, records.ITEMS, 0),  # fields
        (3, 0, records.ITEMS, 0),  # column_indices
        (1, 0, records.SIGNS, 1),  # path
    ],
    np.int64,
)
#: Bytes of memory for the columns of each data file, and for its path.
_FILE_MEMORY = 80
_PATH_MEMORY = 100
#: Bytes of memory of an object in a decoded fragment.
_MEMBER_MEMORY = 500
#: Ids from here on are rejected when a manifest is read.
_END_OF_IDS = 1 << 32
_TAG = bytes([_MANIFEST_FRAGMENTS << 3 | 2])


@dataclass(frozen=True)
class FragmentColumns:
    """Values of all fragments in a list as arrays, with one entry per fragment or per data file.

    Attributes
    ----------
    ids, physical_rows
        int64. 64-bit numbers that do not fit are negative.
    has_deletions, num_deleted_rows, deletion_types, deletion_base_ids
        True if there is a deletion file, the number of rows that it deletes (0 if not stated), its format and its base
        path (-1: none).
    has_row_ids, has_inline_row_ids, has_spilled_lineage, has_overlays, has_clustering
        True if there are row ids, one sequence of row ids in the message, lineage in hidden columns, overlay files, a
        clustering id.
    num_files
        Number of data files.
    file_owners
        Position of the fragment of each data file.
    file_versions
        (major, minor) version numbers of each data file, as ``major << 32 | minor``.
    file_sizes, file_base_ids
        Size in bytes (0 if unknown), base path (-1: none).
    file_max_field_ids
        Highest field id, -1 without fields.
    file_fields, file_column_indices
        Number of field ids and number of column indices.
    has_plain_path
        True if the path is a file name that consists only of letters, digits, ``-``, ``_`` and ``.``.
    """

    ids: Numbers
    physical_rows: Numbers
    has_deletions: NDArray[np.bool_]
    num_deleted_rows: Numbers
    deletion_types: Numbers
    deletion_base_ids: Numbers
    has_row_ids: NDArray[np.bool_]
    has_inline_row_ids: NDArray[np.bool_]
    has_spilled_lineage: NDArray[np.bool_]
    has_overlays: NDArray[np.bool_]
    has_clustering: NDArray[np.bool_]
    num_files: Numbers
    file_owners: Numbers
    file_versions: Numbers
    file_sizes: Numbers
    file_base_ids: Numbers
    file_max_field_ids: Numbers
    file_fields: Numbers
    file_column_indices: Numbers
    has_plain_path: NDArray[np.bool_]

    @cached_property
    def distinct_versions(self) -> list[tuple[int, int]]:
        """Distinct (major, minor) version numbers of data files."""
        return [(code >> 32, code & 0xFFFFFFFF) for code in np.unique(self.file_versions).tolist()]

    @cached_property
    def storage_versions(self) -> frozenset[str]:
        """Storage versions of the data files, without those of unknown numbers."""
        found = (known_storage_version(*numbers) for numbers in self.distinct_versions)
        return frozenset(version for version in found if version is not None)

    def followed_by(self, other: FragmentColumns) -> FragmentColumns:
        """Concatenate the columns of this list and of another one."""
        shifted = replace(other, file_owners=other.file_owners + len(self.ids))
        pairs = ((getattr(self, each.name), getattr(shifted, each.name)) for each in fields(self))
        return FragmentColumns(*(np.concatenate(pair) for pair in pairs))

    @cached_property
    def num_deletion_files(self) -> int:
        """Number of fragments with a deletion file."""
        return int(np.count_nonzero(self.has_deletions))

    @cached_property
    def is_ascending(self) -> bool:
        """True if the ids are ascending."""
        return bool((self.ids[1:] > self.ids[:-1]).all())

    @cached_property
    def num_rows(self) -> Numbers:
        """Live rows of each fragment, -1 if only its files state them."""
        unknown = (self.physical_rows == 0) | self.has_deletions & (self.num_deleted_rows == 0)
        return np.where(unknown, -1, self.physical_rows - self.num_deleted_rows)

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        """Mask of the fragments that state their numbers of rows and deletions, and the sizes of their files."""
        sized = np.ones(len(self.ids), bool)
        sized[self.file_owners[self.file_sizes == 0]] = False
        return sized & (self.num_rows >= 0)


class _Messages:
    """Serialized messages of fragments, the place of each, and what was decoded of all of them.

    Parameters
    ----------
    data, where
        See `FragmentList`.
    """

    def __init__(self, data: bytes, where: str) -> None:
        self.data = data
        self.where = where
        _, self._heads, self._starts, self._ends = locate_records(data, whole_range(data), _MANIFEST_FRAGMENTS, where)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, position: int) -> bytes:
        """Return one message, without its tag and length."""
        return self.data[int(self._starts[position]) : int(self._ends[position])]

    def locate(self, field: int) -> tuple[Numbers, Numbers, Numbers]:
        """See `FragmentList.locate`."""
        owners, _, starts, ends = locate_records(self.data, (self._starts, self._ends), field, self.where)
        return owners, starts, ends

    @cached_property
    def _files(self) -> tuple[Numbers, Numbers, Numbers]:
        """Position of the fragment of each data file, and the byte range of the file's message."""
        ranges = (self._starts, self._ends)
        owners, _, starts, ends = locate_records(
            self.data, ranges, _FRAGMENT_FILES, self.where, per_record=_FILE_MEMORY
        )
        return owners, starts, ends

    @cached_property
    def columns(self) -> FragmentColumns:
        """Values of all fragments as arrays."""
        owners, starts, ends = self._files
        own = _numbers(self.data, self._starts, self._ends, _FRAGMENT_COLUMNS, self.where)
        files = _numbers(self.data, starts, ends, _FILE_COLUMNS, self.where)
        return FragmentColumns(
            ids=own[0],
            physical_rows=own[1],
            has_deletions=own[2] > 0,
            num_deleted_rows=own[3],
            deletion_types=own[11],
            deletion_base_ids=own[4],
            has_row_ids=own[5] + own[6] > 0,
            has_inline_row_ids=(own[5] == 1) & (own[6] == 0),
            has_spilled_lineage=own[6] + own[7] + own[8] > 0,
            has_overlays=own[9] > 0,
            has_clustering=own[12] >= 0,
            num_files=own[10],
            file_owners=owners,
            file_versions=(files[0] << 32) | files[1],
            file_sizes=files[2],
            file_base_ids=files[3],
            file_max_field_ids=files[4],
            file_fields=files[5],
            file_column_indices=files[6],
            has_plain_path=files[7] == 0,
        )

    @cached_property
    def positions(self) -> dict[int, int]:
        """Position of each fragment id."""
        return {fragment_id: position for position, fragment_id in enumerate(self.columns.ids.tolist())}

    def file_paths(self) -> list[bytes]:
        """Return the path of each data file, as stored."""
        _, starts, ends = self._files
        owners, _, firsts, lasts = locate_records(
            self.data, (starts, ends), _FILE_PATH, self.where, per_record=_PATH_MEMORY
        )
        paths = [self.data[first:last] for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)]
        if len(owners) == len(starts) and (owners[1:] > owners[:-1]).all():
            return paths
        last_ones = dict(zip(owners.tolist(), paths, strict=True))
        return [last_ones.get(position, b"") for position in range(len(starts))]

    def with_shared_fields(self) -> Numbers:
        """Return the positions of fragments in which several data files have the same field.

        In legacy files, all listed fields count.
        """
        several = np.flatnonzero(self.columns.num_files > 1)
        if not len(several):
            return several
        ranges = (self._starts[several], self._ends[several])
        owners, _, starts, ends = locate_records(self.data, ranges, _FRAGMENT_FILES, self.where)
        files, fields = locate_numbers(self.data, (starts, ends), _FILE_FIELDS, self.where)
        in_files, columns = locate_numbers(self.data, (starts, ends), _FILE_COLUMN_INDICES, self.where)
        held = fields >= 0
        if np.array_equal(files, in_files):  # not so in legacy files, which have no column indices
            held &= columns >= 0
        listed = np.sort(files[held] << 32 | fields[held])
        listed = listed[np.diff(listed, prepend=-1) > 0]  # once for each file
        keys = np.sort(owners[listed >> 32] << 32 | listed & 0xFFFFFFFF)
        shared = keys[1:][keys[1:] == keys[:-1]] >> 32
        return several[shared[np.diff(shared, prepend=-1) > 0]]

    def picked(self, positions: Numbers) -> _Messages:
        """Return the messages at some positions, in that order."""
        return _Messages(joined_ranges(self.data, self._heads[positions], self._ends[positions]), self.where)

    def edited(self, changed: Mapping[int, bytes], added: Sequence[Fragment]) -> _Messages:
        """Return the messages with those at some positions replaced, and others appended."""
        cuts = [0, *(int(self._heads[position]) for position in sorted(changed)), len(self.data)]
        pieces = [self.data[start:stop] for start, stop in pairwise(cuts)]
        for index, position in enumerate(sorted(changed)):
            old = int(self._ends[position]) - int(self._heads[position])
            pieces[index + 1] = changed[position] + pieces[index + 1][old:]
        made = _Messages(b"".join([*pieces, *map(_encoded, added)]), self.where)
        if not changed and "columns" in vars(self):  # decoded already: only those of the new fragments are missing
            made.columns = self.columns.followed_by(FragmentList.of(added).columns)
        return made


class FragmentList(Sequence[Fragment]):
    """Fragments in scan order.

    Parameters
    ----------
    data
        Serialized messages, each as a field of the manifest message.
    where
        Name of the manifest, for error messages.
    check
        Called with each fragment when it is first accessed.

    Raises
    ------
    CorruptFileError
        The bytes are not a list of fragments.
    """

    def __init__(self, data: bytes, where: str, check: Callable[[Fragment], None] | None = None) -> None:
        self._messages = _Messages(data, where)
        self._check = check
        self._known: dict[int, Fragment] = {}

    @classmethod
    def _over(
        cls, messages: _Messages, check: Callable[[Fragment], None] | None, known: dict[int, Fragment]
    ) -> FragmentList:
        made = cls.__new__(cls)
        made._messages, made._check, made._known = messages, check, known
        return made

    @classmethod
    def of(cls, fragments: Iterable[Fragment], where: str = "new version") -> FragmentList:
        """Build a list from fragments."""
        if isinstance(fragments, FragmentList):
            return fragments
        values = tuple(fragments)
        return cls._over(_Messages(b"".join(map(_encoded, values)), where), None, dict(enumerate(values)))

    def checked_by(self, check: Callable[[Fragment], None]) -> FragmentList:
        """Return the same list with a check of each fragment on access."""
        known = self._known.copy()  # other threads may add to it meanwhile
        for fragment in known.values():
            check(fragment)
        return self._over(self._messages, check, known)

    @property
    def data(self) -> bytes:
        """The serialized messages, each as a field of the manifest message."""
        return self._messages.data

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, position: int) -> Fragment: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[Fragment, ...]: ...
    def __getitem__(self, position: int | slice) -> Fragment | tuple[Fragment, ...]:
        if isinstance(position, slice):
            return tuple(self[index] for index in range(*position.indices(len(self))))
        index = range(len(self))[position]
        known = self._known.get(index)
        if known is None:
            where = self._messages.where
            message = parse_message(
                table_pb2.DataFragment, self._messages[index], where, per_message=_MEMBER_MEMORY, per_number=8
            )
            known = Fragment.from_proto(message, where)
            if self._check is not None:
                self._check(known)
            self._known[index] = known
        return known

    def __iter__(self) -> Iterator[Fragment]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FragmentList) and other.data == self.data:
            return True
        if not isinstance(other, FragmentList | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FragmentList({list(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, without cached values."""
        return FragmentList, (self.data, self._messages.where, self._check)

    # -- all fragments together --------------------------------------------------------------------------------------

    @property
    def columns(self) -> FragmentColumns:
        """Values of all fragments as arrays."""
        return self._messages.columns

    @property
    def ids(self) -> Numbers:
        """Ids of the fragments."""
        return self.columns.ids

    def position(self, fragment_id: int) -> int | None:
        """Return the position of the fragment with an id, None if it does not exist."""
        return self._messages.positions.get(fragment_id)

    def find(self, fragment_id: int) -> Fragment | None:
        """Return the fragment with an id, None if it does not exist."""
        position = self.position(fragment_id)
        return None if position is None else self[position]

    def file_paths(self) -> list[bytes]:
        """Return the path of each data file, as stored."""
        return self._messages.file_paths()

    def locate(self, field: int) -> tuple[Numbers, Numbers, Numbers]:
        """Locate what a field of the fragments contains.

        Parameters
        ----------
        field
            Number of the field, which has bytes.

        Returns
        -------
        owners, starts, ends
            Position of the fragment, and byte range in `data`.

        Raises
        ------
        CorruptFileError
            The bytes are not a list of fragments.
        """
        return self._messages.locate(field)

    def with_shared_fields(self) -> Numbers:
        """Return the positions of fragments in which several data files have the same field.

        In legacy files, all listed fields count.
        """
        return self._messages.with_shared_fields()

    # -- other lists -----------------------------------------------------------------------------------------------

    def picked(self, positions: Numbers) -> FragmentList:
        """Return a list of the fragments at some positions, in that order."""
        if len(positions) == len(self) and (positions == np.arange(len(self))).all():
            return self
        known = self._known.copy()
        kept = {place: known[old] for place, old in enumerate(positions.tolist()) if old in known} if known else {}
        return self._over(self._messages.picked(positions), self._check, kept)

    def edited(self, removed: Set[int], updated: Mapping[int, Fragment], added: Sequence[Fragment]) -> FragmentList:
        """Return the list with some fragments removed, some replaced, and some added. See the function `edited`."""
        possible = [each for each in removed if 0 <= each < _END_OF_IDS]
        going = np.isin(self.ids, np.array(possible, np.int64)) if possible else np.zeros(len(self), bool)
        kept = self.picked(np.flatnonzero(~going)) if going.any() else self
        places = {kept.position(fragment_id): fragment for fragment_id, fragment in updated.items()}
        changed = {place: fragment for place, fragment in places.items() if place is not None}
        if not changed and not added:
            return kept
        messages = kept._messages.edited({place: _encoded(fragment) for place, fragment in changed.items()}, added)
        return self._over(messages, self._check, {**kept._known, **changed, **dict(enumerate(added, start=len(kept)))})

    def ordered(self) -> FragmentList:
        """Return the list ordered by id."""
        ids = self.ids
        if (ids[1:] >= ids[:-1]).all():
            return self
        return self.picked(np.argsort(ids, kind="stable"))


def edited(
    fragments: Sequence[Fragment],
    *,
    removed: Set[int] = frozenset(),
    updated: Mapping[int, Fragment] | None = None,
    added: Iterable[Fragment] = (),
) -> FragmentList:
    """Return fragments with some removed, some replaced in place, and some appended.

    Parameters
    ----------
    fragments
        The list, which is not changed.
    removed
        Ids of fragments to remove. Unknown ones are ignored.
    updated
        Replacements of fragments, by their id. Unknown ids are ignored.
    added
        New fragments.
    """
    return FragmentList.of(fragments).edited(removed, updated or {}, tuple(added))


def _encoded(fragment: Fragment) -> bytes:
    try:
        data = fragment.to_proto().SerializeToString()
    except (ValueError, TypeError, DecodeError) as error:
        raise InvalidInputError(f"fragment {fragment.id} has a value that cannot be stored: {error}") from error
    return _TAG + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _numbers(data: bytes, starts: Numbers, ends: Numbers, wanted: Numbers, where: str) -> Numbers:
    out = np.empty((len(wanted), len(starts)), np.int64)
    try:
        records.columns(data, starts, ends, wanted, out)
    except CodecError as error:
        raise CorruptFileError(f"{where}: the list of fragments is damaged: {error}") from error
    return out
