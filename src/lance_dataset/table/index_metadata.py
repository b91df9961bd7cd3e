"""Indices as listed in a manifest."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import field

from google.protobuf.any_pb2 import Any as AnyMessage

from lance_dataset._proto import table_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.late_dataclass import dataclass

__all__ = ["IndexDetails", "IndexFile", "IndexMetadata", "uuid_from_proto", "uuid_to_proto"]


@dataclass(frozen=True)
class IndexDetails:
    """Details of an index, in a message specific to its kind.

    Attributes
    ----------
    type_url
        URL of the message type. Its case differs between releases.
    value
        The serialized message.
    """

    type_url: str
    value: bytes

    @classmethod
    def from_proto(cls, message: AnyMessage) -> IndexDetails:
        """Build from a message."""
        return cls(message.type_url, message.value)

    def to_proto(self) -> AnyMessage:
        """Return the message of these details."""
        return AnyMessage(type_url=self.type_url, value=self.value)


@dataclass(frozen=True)
class IndexFile:
    """A file of an index.

    Attributes
    ----------
    path
        Path below the folder of the index.
    size_bytes
        Its size.
    """

    path: str
    size_bytes: int


@dataclass(frozen=True)
class IndexMetadata:
    """An index, or one segment of it.

    Attributes
    ----------
    uuid
        Its id, which is the name of its folder.
    name
        Name. The segments of one index share it.
    fields
        Ids of its key columns, then of those that it only stores. Empty for system indices.
    dataset_version
        Version that it was built from.
    fragment_bitmap
        Serialized 32-bit roaring bitmap of the fragments that it covers. Empty if it is not recorded.
    details
        Description specific to its kind, None in old releases.
    index_version
        Version of its format, None if it is not recorded (0).
    created_at
        Milliseconds since the epoch, None if it is not recorded.
    base_id
        Base path of its files, None for the table itself.
    files
        Its files, empty if they are not recorded.
    covering_fields
        Those of `fields` that it only stores.
    clustering_id, metadata
        Reserved by the format, preserved unchanged.
    """

    uuid: str
    name: str
    fields: tuple[int, ...] = ()
    dataset_version: int = 0
    fragment_bitmap: bytes = field(default=b"", repr=False)
    details: IndexDetails | None = None
    index_version: int | None = None
    created_at: int | None = None
    base_id: int | None = None
    files: tuple[IndexFile, ...] = ()
    covering_fields: tuple[int, ...] = ()
    clustering_id: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_proto(cls, message: table_pb2.IndexMetadata, where: str) -> IndexMetadata:
        """Read a message.

        Raises
        ------
        CorruptFileError
            Its id is not a UUID.
        """
        return cls(
            uuid=uuid_from_proto(message.uuid, f"{where}: index {message.name!r}"),
            name=message.name,
            fields=tuple(message.fields),
            dataset_version=message.dataset_version,
            fragment_bitmap=message.fragment_bitmap,
            details=IndexDetails.from_proto(message.index_details) if message.HasField("index_details") else None,
            index_version=message.index_version if message.HasField("index_version") else None,
            created_at=message.created_at if message.HasField("created_at") else None,
            base_id=message.base_id if message.HasField("base_id") else None,
            files=tuple(IndexFile(file.path, file.size_bytes) for file in message.files),
            covering_fields=tuple(message.covering_fields),
            clustering_id=message.clustering_id if message.HasField("clustering_id") else None,
            metadata=dict(message.metadata),
        )

    def to_proto(self) -> table_pb2.IndexMetadata:
        """Return the message of this index."""
        return table_pb2.IndexMetadata(
            uuid=uuid_to_proto(self.uuid),
            name=self.name,
            fields=self.fields,
            dataset_version=self.dataset_version,
            fragment_bitmap=self.fragment_bitmap,
            index_details=None if self.details is None else self.details.to_proto(),
            index_version=self.index_version,
            created_at=self.created_at,
            base_id=self.base_id,
            files=[table_pb2.IndexFile(path=file.path, size_bytes=file.size_bytes) for file in self.files],
            covering_fields=self.covering_fields,
            clustering_id=self.clustering_id,
            metadata=self.metadata,
        )


def uuid_from_proto(message: table_pb2.UUID, where: str) -> str:
    """Return a UUID as a string.

    Raises
    ------
    CorruptFileError
        It does not have 16 bytes.
    """
    if len(message.uuid) != 16:
        raise CorruptFileError(f"{where}: its id has {len(message.uuid)} bytes, a UUID has 16")
    return str(uuid.UUID(bytes=bytes(message.uuid)))


def uuid_to_proto(text: str) -> table_pb2.UUID:
    """Return the message of a UUID."""
    return table_pb2.UUID(uuid=uuid.UUID(text).bytes)
