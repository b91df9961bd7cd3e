"""Public records of indices in transactions."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lance_dataset.arguments import check_count
from lance_dataset.errors import InvalidInputError
from lance_dataset.late_dataclass import dataclass
from lance_dataset.table import index_metadata as table
from lance_dataset.table.indices.coverage import coverage
from lance_dataset.table.roaring import encode_bitmap

__all__ = ["Index", "IndexFile", "IndexSegment"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MILLISECOND = dt.timedelta(milliseconds=1)


@dataclass
class IndexFile:
    """File of an index.

    Parameters
    ----------
    path
        Path below the folder of the index.
    size_bytes
        Size in bytes.
    """

    path: str
    size_bytes: int

    @classmethod
    def from_table(cls, file: table.IndexFile) -> IndexFile:
        """Make the public record of a file that a manifest lists."""
        return cls(file.path, file.size_bytes)

    def to_table(self) -> table.IndexFile:
        """Convert the record to the form of a manifest."""
        return table.IndexFile(self.path, self.size_bytes)


@dataclass(frozen=True)
class IndexSegment:
    """Identity of a segment of an index: id, fragments and format version.

    Parameters
    ----------
    uuid
        Its id, which is also the name of its folder.
    fragment_ids
        Ids of the fragments that it covers.
    index_version
        Version of the index format.
    """

    uuid: str
    fragment_ids: frozenset[int]
    index_version: int


@dataclass
class Index:
    """Index, or one segment of an index.

    Parameters
    ----------
    uuid
        Id, which is also the name of its folder.
    name
        Name, which is the same for all segments of an index.
    fields
        Ids of the indexed fields.
    dataset_version
        Version that it was built from.
    fragment_ids
        Ids of the fragments that it covers; None if unknown.
    index_version
        Version of the index format.
    created_at
        Time of creation.
    base_id
        Base path of its files; None for the dataset itself.
    files
        Its files; None if unknown.
    index_details
        Type URL of its description, and the serialized description.
    covering_fields
        Ids of those fields that are only stored in the index, not indexed.
    """

    uuid: str
    name: str
    fields: list[int]
    dataset_version: int
    fragment_ids: set[int] | None
    index_version: int
    created_at: dt.datetime | None = None
    base_id: int | None = None
    files: list[IndexFile] | None = None
    index_details: tuple[str, bytes] | None = None
    covering_fields: list[int] = field(default_factory=list)
    # Reserved by the format; copied from one manifest to the next.
    _clustering_id: int | None = field(default=None, init=False, repr=False, compare=False)
    _metadata: Mapping[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def segment(self) -> IndexSegment:
        """Id, fragments and format version; no fragments if they are unknown."""
        return IndexSegment(self.uuid, frozenset(self.fragment_ids or ()), self.index_version)

    @classmethod
    def from_table(cls, index: table.IndexMetadata) -> Index:
        """Make the public record of an index that a manifest lists.

        Raises
        ------
        CorruptFileError
            Its fragment bitmap is damaged.
        """
        covered = coverage(index)
        record = cls(
            uuid=index.uuid,
            name=index.name,
            fields=list(index.fields),
            dataset_version=index.dataset_version,
            fragment_ids=None if covered is None else set(covered),
            index_version=index.index_version or 0,
            created_at=None if index.created_at is None else _EPOCH + index.created_at * _MILLISECOND,
            base_id=index.base_id,
            files=[IndexFile.from_table(file) for file in index.files] or None,
            index_details=None if index.details is None else (index.details.type_url, index.details.value),
            covering_fields=list(index.covering_fields),
        )
        record._clustering_id = index.clustering_id
        record._metadata = dict(index.metadata)
        return record

    def to_table(self) -> table.IndexMetadata:
        """Convert the record to the form of a manifest.

        Raises
        ------
        InvalidInputError
            The id is not a UUID, or a number is out of range.
        TypeError
            A value has the wrong type.
        """
        _check(self)
        return table.IndexMetadata(
            uuid=_canonical(self.uuid),
            name=self.name,
            fields=tuple(self.fields),
            dataset_version=self.dataset_version,
            fragment_bitmap=b"" if self.fragment_ids is None else _bitmap(self.fragment_ids),
            details=None if self.index_details is None else table.IndexDetails(*self.index_details),
            index_version=self.index_version,
            created_at=None if self.created_at is None else _milliseconds(self.created_at),
            base_id=self.base_id,
            files=tuple(file.to_table() for file in self.files or ()),
            covering_fields=tuple(self.covering_fields),
            clustering_id=self._clustering_id,
            metadata=self._metadata,
        )


def _check(index: Index) -> None:
    """Raise an error for values that a manifest cannot hold."""
    types: tuple[tuple[str, Any], ...] = (("name", str), ("created_at", dt.datetime | None))
    for name, wanted in types:
        if not isinstance(getattr(index, name), wanted):
            raise TypeError(f"{name} of an index must not be {getattr(index, name)!r}")
    numbers = [("dataset_version", index.dataset_version, 64), ("index_version", index.index_version, 31)]
    numbers += [("base_id", index.base_id, 32)] if index.base_id is not None else []
    numbers += [("field id", each, 31) for each in (*index.fields, *index.covering_fields)]
    for name, number, bits in numbers:
        check_count(name, number)
        if number >= 1 << bits:
            raise InvalidInputError(f"{name} {number} of an index is too large; it has {bits} bits")
    details = index.index_details
    is_pair = isinstance(details, tuple) and list(map(type, details)) == [str, bytes]
    if details is not None and not is_pair:
        raise TypeError(f"index_details must be a pair of the URL of a type and bytes, not {details!r}")


def _canonical(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except (ValueError, TypeError, AttributeError):
        raise InvalidInputError(f"the id of an index must be a UUID, not {text!r}") from None


def _bitmap(fragment_ids: set[int]) -> bytes:
    ids = list(fragment_ids)
    for each in ids:
        check_count("fragment id", each)
    wrong = [each for each in ids if each >= 1 << 32]
    if wrong:
        raise InvalidInputError(f"an index cannot cover the fragment {wrong[0]}: ids must be below 2**32")
    return encode_bitmap(ids)


def _milliseconds(moment: dt.datetime) -> int:
    """Return the milliseconds since the epoch; a time without a time zone is local."""
    return (moment.astimezone(dt.timezone.utc) - _EPOCH) // _MILLISECOND
