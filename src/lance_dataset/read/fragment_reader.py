"""Reader of one fragment: columns of its data files, deleted rows, and system columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.blob_fields import as_pairs, described, is_resolved
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.container import MAX_ROWS, FileMetadata
from lance_dataset.file.options import is_blob_v2
from lance_dataset.file.plain_columns import ColumnPart, PlainColumns
from lance_dataset.file.reader import DataFile as OpenFile
from lance_dataset.file.reader import open_fragment_column, open_metadata, open_plain_columns
from lance_dataset.file.versions import READABLE_VERSIONS
from lance_dataset.io.base import InputFile
from lance_dataset.limits import UNLIMITED, ResultLimit, check_memory
from lance_dataset.memory import memory_limit
from lance_dataset.properties import cached_property
from lance_dataset.read.blob_columns import ConvertedColumn, blob_values, descriptors_of_pairs, stored_blobs
from lance_dataset.read.blob_places import BlobPlaces
from lance_dataset.read.live_column import LiveColumn
from lance_dataset.table.deletions import read_deletions
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment, Lineage, Spilled
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.row_addresses import addresses_in
from lance_dataset.types.schema import Field

__all__ = ["SYSTEM_COLUMNS", "FragmentReader"]

_REMEMBERED = 1 << 14
_ID_BYTES = 8
#: Sets of columns that are kept to be read together.
_PLAIN_SETS = 4

#: Columns that every dataset has in addition to its schema.
SYSTEM_COLUMNS = {
    "_rowid": pa.field("_rowid", pa.uint64()),
    "_rowaddr": pa.field("_rowaddr", pa.uint64()),
    "_rowoffset": pa.field("_rowoffset", pa.uint64()),
    "_row_created_at_version": pa.field("_row_created_at_version", pa.uint64()),
    "_row_last_updated_at_version": pa.field("_row_last_updated_at_version", pa.uint64()),
}

#: Ids of the hidden fields that hold row lineage.
_HIDDEN = {"_rowid": -3, "_row_created_at_version": -4, "_row_last_updated_at_version": -5}


@lru_cache(maxsize=64)
def _owners(files: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...]) -> Mapping[int, tuple[int, int]]:
    """Return a mapping from field id to data file and column index.

    Fragments whose files hold the same columns share the mapping.

    Parameters
    ----------
    files
        For every file: field ids, column indices, and True for a legacy file, whose columns are found by field id.
    """
    owners = {}
    for number, (fields, indices, legacy) in enumerate(files):
        for field_id, index in zip(fields, fields if legacy else indices, strict=True):
            if field_id >= 0 and index >= 0:
                owners[field_id] = (number, index)
    return owners


#: Field ids by identity of the field, which the entry keeps alive. A lookup is cheaper than walking the field.
_keys: dict[int, tuple[Field, tuple[int, ...]]] = {}


def _key(field: Field) -> tuple[int, ...]:
    """Return the ids of a field and all its descendants; the same object for all fragments."""
    known = _keys.get(id(field))
    if known is not None and known[0] is field:
        return known[1]
    found = tuple([node.id for node in field.walk()])
    if len(_keys) >= _REMEMBERED:
        _keys.clear()
    _keys[id(field)] = field, found
    return found


def _whole_content(source: InputFile) -> pa.Buffer | None:
    """Return all bytes of a file that is mapped or held, None for other files."""
    if source.mapped is None and source.holds(0, source.size):
        return source.read(0, source.size)
    return source.mapped


class FragmentReader:
    """Reader of one fragment. Files are opened when a column needs them, and stay open.

    Parameters
    ----------
    locator
        Locator of the files.
    fragment
        Metadata of the fragment.
    before
        Number of live rows in all earlier fragments of the scan order, or the reader of the previous fragment.
    elsewhere
        Function that opens a column which no file of the fragment holds, given the row ids. It returns None if the
        column is null.
    limit
        Limit of the memory of each result.
    """

    def __init__(
        self,
        locator: FileLocator,
        fragment: Fragment,
        before: int | FragmentReader = 0,
        elsewhere: Callable[[Field, NDArray[np.uint64]], ColumnReader | None] | None = None,
        limit: ResultLimit = UNLIMITED,
    ) -> None:
        if fragment.physical_rows > MAX_ROWS:
            raise CorruptFileError(f"the manifest claims {fragment.physical_rows} rows for fragment {fragment.id}")
        if fragment.physical_rows and not fragment.files:
            raise CorruptFileError(
                f"the manifest claims {fragment.physical_rows} rows for fragment {fragment.id}, which has no data file"
            )
        self.fragment = fragment
        self._limit = limit
        self._before = before
        self._locator = locator
        self._elsewhere = elsewhere
        self._files: dict[tuple[int | None, str], OpenFile] = {}
        self._owners: Mapping[int, tuple[int, int]] | None = None
        self._columns: dict[tuple[int, ...], ColumnReader] = {}
        self._plain: dict[tuple[int, ...], PlainColumns | None] = {}
        self._places: dict[int, BlobPlaces] = {}
        #: Takers of projections, used by `lance_dataset.read.row_taker`.
        self.takers: dict[tuple[int, ...], Any] = {}

    @property
    def limit(self) -> ResultLimit:
        """Limit of the memory of a result that is made now."""
        return self._limit.within(memory_limit())

    # -- files ---------------------------------------------------------------------------------------------------

    def _open(self, file: DataFile, make: Callable[[], OpenFile] | None = None) -> OpenFile:
        key = file.base_id, file.path
        known = self._files.get(key)
        if known is None:
            opened = self._locator.opened(file, make or partial(self._open_new, file))
            # the first of several threads wins: all parts of a column must belong to the same open file
            known = self._files.setdefault(key, opened)
        return known

    def _open_new(self, file: DataFile) -> OpenFile:
        store, path = self._locator.data_file(file)
        legacy = file.storage_version == LEGACY_VERSION
        # releases around 1.0 recorded wrong sizes of legacy files
        size = None if legacy else file.file_size_bytes or None
        return open_metadata(store.open_input(path, size), file.fields, legacy=legacy)

    def open_files(self) -> None:
        """Open all data files, even those without a column of the schema, and check that their row counts agree."""
        for file in self.fragment.files:
            self._check_file(file)
            self._open_checked(file)

    def hold(
        self, fields: Iterable[Field], whole: Callable[[int], bool], held: list[Callable[[], None] | None]
    ) -> None:
        """Open the files with some columns, and fetch all pages of these columns with few requests.

        Parameters
        ----------
        fields
            Top-level fields.
        whole
            Returns True if a file of a size in bytes is to be fetched as a whole when it is opened.
        held
            Gets functions that end `InputFile.hold`; also if this method fails.
        """
        wanted: dict[tuple[int | None, str], tuple[DataFile, list[int]]] = {}
        for field_id in dict.fromkeys(node.id for field in fields for node in field.walk()):
            if (owner := self._owner(field_id)) is not None:
                wanted.setdefault((owner[0].base_id, owner[0].path), (owner[0], []))[1].append(owner[1])
        for key, (file, columns) in wanted.items():
            if key not in self._files and not file.is_legacy and file.file_size_bytes and whole(file.file_size_bytes):
                self._open(file, partial(self._open_whole, file, held))
            opened = self._open(file)
            if isinstance(opened, FileMetadata):
                pages = [page for column in columns for page in opened.column(column).pages]
                held.append(opened.source.hold([place for page in pages for place in page.buffers]))

    def _open_whole(self, file: DataFile, held: list[Callable[[], None] | None]) -> OpenFile:
        store, path = self._locator.data_file(file)
        source, release = store.open_whole(path, file.file_size_bytes)
        held.append(release)
        return open_metadata(source, file.fields, legacy=False)

    def unopened(self, fields: Iterable[Field]) -> list[Callable[[], object]]:
        """Return calls that open what columns need and is not open yet: a data file each, and the deletion file."""
        ids = dict.fromkeys(node.id for field in fields for node in field.walk())
        owners = [owner[0] for field_id in ids if (owner := self._owner(field_id)) is not None]
        files = {(file.base_id, file.path): file for file in owners}
        calls: list[Callable[[], object]] = [
            partial(self._open, file) for key, file in files.items() if key not in self._files
        ]
        if self.fragment.deletion_file is not None and "deletions" not in self.__dict__:
            calls.append(lambda: self.deletions)
        return calls

    def _owner(self, field_id: int) -> tuple[DataFile, int] | None:
        """Return the data file that holds a field and its column index, or None. The last file wins."""
        owners, files = self._owners, self.fragment.files
        if owners is None:
            for file in files:
                self._check_file(file)
            owners = self._owners = _owners(
                tuple([(file.fields, file.column_indices, file.is_legacy) for file in files])
            )
        found = owners.get(field_id)
        return None if found is None else (files[found[0]], found[1])

    def _check_file(self, file: DataFile) -> None:
        """Raise an error for a file whose columns cannot be read, so that they are not taken for missing and null."""
        if file.storage_version not in READABLE_VERSIONS:
            raise UnsupportedError(
                f"data file {file.path!r} of fragment {self.fragment.id} has file version {file.storage_version}, "
                f"which this release cannot read; it reads {', '.join(sorted(READABLE_VERSIONS))}"
            )
        if file.storage_version != LEGACY_VERSION and len(file.fields) != len(file.column_indices):
            raise CorruptFileError(
                f"data file {file.path!r} of fragment {self.fragment.id}: the manifest lists {len(file.fields)} fields "
                f"and {len(file.column_indices)} column indices"
            )

    def source_of(self, field_id: int) -> InputFile | None:
        """Return the data file that holds a field, or None if no file does."""
        owner = self._owner(field_id)
        return None if owner is None else self._open(owner[0]).source

    def stored(self, field_id: int) -> tuple[OpenFile, int] | None:
        """Return the data file that holds a field and its column index, or None if no file does."""
        owner = self._owner(field_id)
        return None if owner is None else (self._open(owner[0]), owner[1])

    @cached_property
    def is_mapped(self) -> bool:
        """True if all files are memory mapped, so that reads make no requests."""
        return all(source.mapped is not None for source in self._one_per_base())

    @cached_property
    def is_remote(self) -> bool:
        """True if some file lies on another machine. No file is opened if its store tells."""
        if any(self._locator.data_file(file)[0].is_remote for file in self.fragment.files):
            return True
        return any(source.is_remote for source in self._one_per_base())

    def _one_per_base(self) -> Iterator[InputFile]:
        """Yield one data file of each base path, since all files of a base path lie in the same store."""
        files = {file.base_id: file for file in reversed(self.fragment.files)}
        return (self._open(file).source for file in files.values())

    @cached_property
    def physical_rows(self) -> int:
        """Number of rows in the files, deleted ones included."""
        if self.fragment.physical_rows or not self.fragment.files:
            return self.fragment.physical_rows
        return self._open(self.fragment.files[0]).num_rows

    @property
    def known_physical_rows(self) -> int | None:
        """Number of physical rows, or None if a file would have to be opened to find it."""
        return self.__dict__.get("physical_rows")

    @cached_property
    def num_rows(self) -> int:
        """Number of live rows."""
        known = self.fragment.num_rows
        if known is not None:
            return known
        live = self.physical_rows - len(self.deletions)
        if live < 0:
            raise CorruptFileError(
                f"fragment {self.fragment.id}: {len(self.deletions)} deleted rows, but its files have only "
                f"{self.physical_rows}"
            )
        return live

    @cached_property
    def live_start(self) -> int:
        """Number of live rows in all fragments before this one."""
        total, before = 0, self._before
        while isinstance(before, FragmentReader):
            total += before.num_rows
            before = before.live_start if "live_start" in vars(before) else before._before
        return total + before

    @cached_property
    def bytes_per_row(self) -> float:
        """Estimated stored size of a row in bytes, used to choose the size of reads."""
        return max(self.num_bytes / max(self.physical_rows, 1), 1.0)

    @property
    def num_bytes(self) -> int:
        """Size of the data files in bytes. Files are opened if the manifest does not have their size."""
        return sum(file.file_size_bytes or self._open(file).source.size for file in self.fragment.files)

    def expect_many_rows(self) -> None:
        """Have the system load the surroundings of rows that are taken; see `FileMetadata.expect_many_rows`."""
        for file in self._files.values():
            if isinstance(file, FileMetadata):
                file.expect_many_rows()

    def check_bounds(self) -> None:
        """Raise CorruptFileError if an open file has bounds of values that cannot be used."""
        for file in self._files.values():
            if isinstance(file, FileMetadata):
                file.check_bounds()

    def column(self, field: Field) -> ColumnReader:
        """Return the reader of a top-level field, which may be pruned. The reader is cached."""
        key = _key(field)
        known = self._columns.get(key)
        if known is None:
            # the first of several threads wins, so that pages are opened once
            known = self._columns.setdefault(key, self._open_column(field))
        return known

    def _open_column(self, field: Field) -> ColumnReader:
        if not field.children and not field.metadata and field.blob is None:
            return self._open_stored(field)
        if any(is_resolved(node) for node in field.walk()):
            return self._open_resolved(field)
        have = as_pairs(field, self._is_before_blobs)
        column = self._open_stored(have)
        return column if have is field else ConvertedColumn(column, have, field, descriptors_of_pairs)

    def _open_resolved(self, field: Field) -> ColumnReader:
        """Open a field with blobs of version 2 in another form than descriptors."""
        have = described(field)

        def convert(array: pa.Array, node: Field, wanted: Field) -> pa.Array:
            form = stored_blobs if is_blob_v2(wanted) else blob_values
            places = self.blob_places(node.id)
            if places is None:  # no file has the column
                return pa.nulls(len(array), wanted.storage_type)
            return form(places, self.limit)(array, node, wanted)

        return ConvertedColumn(self.column(have), have, field, convert)

    def plain_columns(self, fields: Sequence[Field]) -> PlainColumns | None:
        """Return top-level fields of one file as columns that are read together. The last ones are cached.

        Returns
        -------
        PlainColumns or None
            None if a field has children or another form than it has in the file, or if they are in several files.
        """
        key = tuple([field.id for field in fields])
        if key in (known := self._plain):
            return known[key]
        made = self._open_plain(fields)
        # a new dictionary, as other threads may look into this one
        self._plain = {**({} if len(known) >= _PLAIN_SETS else known), key: made}
        return made

    def _open_plain(self, fields: Sequence[Field]) -> PlainColumns | None:
        if self.fragment.overlays or any(field.children or field.metadata or field.blob for field in fields):
            return None
        owners = [self._owner(field.id) for field in fields]
        file = owners[0][0] if owners and owners[0] is not None else None
        indices = [owner[1] for owner in owners if owner is not None and owner[0] is file]
        if file is None or len(indices) < len(fields):
            return None
        return open_plain_columns(self._open_checked(file), fields, indices, self.physical_rows)

    def part(self, field: Field, start: int, stop: int) -> ColumnPart | None:
        """Return rows of a top-level field to be read together with those of other fragments, or None if they cannot.

        The field has no children and no metadata.
        """
        owner = None if self.fragment.overlays else self._owner(field.id)
        if owner is None or owner[0].storage_version == LEGACY_VERSION:
            return None
        file = self._open_checked(owner[0])
        mapped = _whole_content(file.source) if isinstance(file, FileMetadata) else None
        if not isinstance(file, FileMetadata) or mapped is None:
            return None
        return ColumnPart(file, mapped, owner[1], self.physical_rows, start, stop)

    def _is_before_blobs(self, field: Field) -> bool:
        """Return True if a file from before blobs of version 2 holds a field."""
        owner = self._owner(field.id)
        return owner is not None and owner[0].storage_version in ("2.0", "2.1")

    def blob_places(self, field_id: int) -> BlobPlaces | None:
        """Return the places of the values of a blob field of version 2, or None if no file holds the field."""
        known = self._places.get(field_id)
        owner = self._owner(field_id)
        if known is None and owner is not None:
            file = owner[0]
            made = BlobPlaces(self._locator, file, lambda: self._open(file).source)
            known = self._places.setdefault(field_id, made)
        return known

    def _open_stored(self, field: Field) -> ColumnReader:
        if self.fragment.overlays:
            raise UnsupportedError(
                f"fragment {self.fragment.id} has data overlay files, which this release does not read"
            )
        # A column can become required if all its nulls are in deleted rows, whose values stay in the files. In legacy
        # files, the nullability of the field tells null from empty, so it must stay.
        if self.fragment.deletion_file is not None and not self.is_legacy:
            field = field.as_nullable()
        stored = {}
        for node in field.walk() if field.children else (field,):
            owner = self._owner(node.id)
            if owner is not None:
                stored[node.id] = (self._open_checked(owner[0]), owner[1])
        if not stored and self.fragment.files:
            # the column is null, with as many values as the files have rows
            self._open_checked(self.fragment.files[0])
            if self._elsewhere is not None and self.row_ids is not None:
                found = self._elsewhere(field, self._every_row_id(self.row_ids))
                if found is not None:
                    return found
        column = open_fragment_column(field, stored, self.physical_rows)
        if self.fragment.deletion_file is not None and len({id(file) for file, _ in stored.values()}) > 1:
            return LiveColumn(column, self.is_live)
        return column

    @cached_property
    def is_legacy(self) -> bool:
        """True if a data file is older than 2.0. Only such files have statistics of zones."""
        return any(file.storage_version == LEGACY_VERSION for file in self.fragment.files)

    def _open_checked(self, file: DataFile) -> OpenFile:
        metadata = self._open(file)
        if metadata.num_rows != self.physical_rows:
            raise CorruptFileError(
                f"{metadata.source.path}: has {metadata.num_rows} rows, its fragment {self.physical_rows}"
            )
        return metadata

    # -- rows ----------------------------------------------------------------------------------------------------

    @cached_property
    def deletions(self) -> NDArray[np.int64]:
        """Physical offsets of the deleted rows, ascending."""
        if self.fragment.deletion_file is None:
            return np.empty(0, np.int64)
        return read_deletions(self._locator, self.fragment, self.physical_rows).astype(np.int64)

    def take_as_deleted(self, rows: NDArray[np.int64]) -> None:
        """Take these physical offsets, ascending, as the deleted rows, instead of those of the deletion file."""
        self.__dict__["deletions"] = rows

    def live_rows(self, start: int, stop: int) -> NDArray[np.int64] | None:
        """Return the physical offsets of the live rows in ``[start, stop)``, or None if all are live."""
        if self.fragment.deletion_file is None:
            return None
        low, high = np.searchsorted(self.deletions, [start, stop])
        if low == high:
            return None
        keep = np.ones(stop - start, bool)
        keep[self.deletions[low:high] - start] = False
        return np.flatnonzero(keep) + start

    @cached_property
    def _live_bits(self) -> pa.Buffer:
        """A bit for each row, set for live ones."""
        keep = np.ones(self.physical_rows, bool)
        keep[self.deletions] = False
        return pa.py_buffer(np.packbits(keep, bitorder="little"))

    def live_mask(self, start: int, stop: int) -> pa.BooleanArray | None:
        """Return a mask of the live rows in ``[start, stop)``, or None if all are live."""
        if self.fragment.deletion_file is None:
            return None
        low, high = np.searchsorted(self.deletions, [start, stop])
        if low == high:
            return None
        return pa.Array.from_buffers(pa.bool_(), stop - start, [None, self._live_bits], 0, start)

    def is_live(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the offsets that belong to live rows."""
        live = rows < self.physical_rows
        if len(self.deletions):
            at = np.searchsorted(self.deletions, rows)
            live &= self.deletions[np.minimum(at, len(self.deletions) - 1)] != rows
        return live

    def physical(self, live: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the physical offsets of live row numbers of this fragment."""
        if self.fragment.deletion_file is None:
            return live
        shifted = self.deletions - np.arange(len(self.deletions))
        return live + np.searchsorted(shifted, live, side="right")

    # -- system columns ------------------------------------------------------------------------------------------

    def system_column(self, name: str, rows: NDArray[np.int64]) -> pa.Array:
        """Return the values of a system column at physical offsets."""
        if name == "_rowid" and self.row_ids is not None:
            return pa.array(self.row_ids.take(rows))
        if name in ("_rowid", "_rowaddr"):
            return pa.array(self.addresses(rows))
        if name == "_rowoffset":
            return pa.array(self._live_offsets(rows))
        versions = self.created_versions if name == "_row_created_at_version" else self.updated_versions
        return pa.array(versions.take(rows))

    def addresses(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the row addresses of physical offsets."""
        return addresses_in(self.fragment.id, rows)

    def _live_offsets(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        return (self.live_start + rows - np.searchsorted(self.deletions, rows)).astype(np.uint64)

    # -- row lineage ---------------------------------------------------------------------------------------------

    @cached_property
    def row_ids(self) -> RowIds | None:
        """Stable ids of the physical rows, or None if the table does not use stable row ids.

        Raises
        ------
        CorruptFileError
            The ids are malformed, or their number differs from the number of rows.
        """
        data = self.fragment.row_ids
        if data is None:
            return None
        if isinstance(data, Spilled):
            return RowIds.from_values(self._hidden_column("_rowid"))
        return RowIds.decode(data, self.physical_rows, self._where)

    def _every_row_id(self, ids: RowIds) -> NDArray[np.uint64]:
        """Return one id for each physical row."""
        stored = sum(self._open(file).source.size for file in self.fragment.files)
        check_memory(_ID_BYTES * self.physical_rows, stored, f"{self._where}: its row ids")
        return ids.to_numpy()

    @cached_property
    def created_versions(self) -> RowVersions:
        """Versions that created the physical rows. Errors are those of `row_ids`."""
        return self._versions("_row_created_at_version", self.fragment.created_at_versions)

    @cached_property
    def updated_versions(self) -> RowVersions:
        """Versions that last updated the physical rows. Errors are those of `row_ids`."""
        return self._versions("_row_last_updated_at_version", self.fragment.last_updated_at_versions)

    def _versions(self, name: str, data: Lineage) -> RowVersions:
        if isinstance(data, Spilled):
            return RowVersions.from_values(self._hidden_column(name))
        return RowVersions.decode(data, self.physical_rows, self._where)

    @property
    def _where(self) -> str:
        return f"fragment {self.fragment.id}"

    def _hidden_column(self, name: str) -> NDArray[np.uint64]:
        """Read lineage that is stored as a column of a data file."""
        field_id = _HIDDEN[name]
        for file in self.fragment.files:
            self._check_file(file)
        held = [(file, index) for file in self.fragment.files for found, index in file.columns if found == field_id]
        if len(held) != 1:
            raise CorruptFileError(f"{self._where}: {name} should be a column of one data file, not of {len(held)}")
        file, index = held[0]
        if index < 0 or file.is_legacy:
            raise CorruptFileError(f"{self._where}: data file {file.path!r} has no column for {name}")
        field = Field(name, field_id, "uint64", nullable=False)
        column = open_fragment_column(field, {field_id: (self._open_checked(file), index)}, self.physical_rows)
        values = column.read(0, self.physical_rows)
        if values.null_count:
            raise CorruptFileError(f"{self._where}: {name} in data file {file.path!r} has nulls")
        return values.to_numpy()
