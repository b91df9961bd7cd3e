"""Manifests: the description of one version of a table, and its file."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lance_dataset._proto import table_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.file.v0_1.dictionaries import with_dictionaries
from lance_dataset.file.versions import DEFAULT_VERSION
from lance_dataset.io.base import ObjectStore
from lance_dataset.schema import Schema
from lance_dataset.table.checks import check_fields, check_manifest
from lance_dataset.table.flags import Feature, check_readable
from lance_dataset.table.fragment import LEGACY_VERSION, Fragment
from lance_dataset.table.messages import parse_message
from lance_dataset.table.naming import parse_manifest_name

__all__ = [
    "BasePath",
    "Manifest",
    "WriterVersion",
    "decode_manifest",
    "encode_manifest",
    "read_commit_id",
    "read_manifest",
]

_MAGIC = b"LANC"
_FOOTER = struct.Struct("<qHH4s")
_LENGTH = struct.Struct("<I")
_FOOTER_VERSION = (0, 2)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True)
class BasePath:
    """Another place that holds files of the table.

    Attributes
    ----------
    id
        What `DataFile.base_id` and its like refer to.
    path
        Absolute URI or path.
    name
        Name, None when it has none.
    is_dataset_root
        Whether the files lie in subfolders as in a dataset, or directly in the path.
    """

    id: int
    path: str
    name: str | None = None
    is_dataset_root: bool = False

    @classmethod
    def from_proto(cls, message: table_pb2.BasePath) -> BasePath:
        """Take over a message."""
        name = message.name if message.HasField("name") else None
        return cls(message.id, message.path, name, message.is_dataset_root)

    def to_proto(self) -> table_pb2.BasePath:
        """The message of this base path."""
        return table_pb2.BasePath(id=self.id, path=self.path, name=self.name, is_dataset_root=self.is_dataset_root)


@dataclass(frozen=True)
class WriterVersion:
    """Program that wrote a manifest."""

    library: str
    version: str
    prerelease: str | None = None
    build_metadata: str | None = None


@dataclass(frozen=True)
class Manifest:
    """One version of a table.

    Attributes
    ----------
    version
        Version number.
    schema
        Columns of the table.
    fragments
        Fragments in scan order.
    storage_version
        Storage version of new data files (``"2.1"``). Where a manifest does not say, that of its files; and also where
        it says 0.1 although all its files are of a later one, a mistake of release 0.16.
    timestamp_nanos
        Time of the commit, nanoseconds since the epoch.
    reader_flags, writer_flags
        Feature flags, see `Feature`.
    max_fragment_id
        Highest fragment id any version used, None when there never was one.
    next_row_id
        Next unused stable row id.
    config, table_metadata
        Library settings and free metadata of the table.
    base_paths
        Other places that hold files of the table.
    branch
        Name of the branch, None on the main one.
    tag
        Tag of the transaction.
    transaction_file
        Name of the transaction file, empty when there is none.
    writer_version
        Program that wrote the manifest, None for releases that did not say.
    max_allocated_field_id
        Highest field id ever used, on tables that never reuse one.
    blob_dataset_version
        Version of the separate table that holds the blob columns of some old releases, 0 when there is none.
    index_section
        Serialized list of indices, None when there are none.
    inline_transaction
        Serialized transaction, None when it is only in a file.
    legacy_head
        Dictionary values that manifests of 0.1 tables start with; `Field.dictionary` of the schema refers to it.
    path, file_size
        Where the manifest was read from or written to, and its size.
    """

    version: int
    schema: Schema
    fragments: tuple[Fragment, ...] = ()
    storage_version: str = DEFAULT_VERSION
    timestamp_nanos: int = 0
    reader_flags: int = 0
    writer_flags: int = 0
    max_fragment_id: int | None = None
    next_row_id: int = 0
    config: Mapping[str, str] = field(default_factory=dict)
    table_metadata: Mapping[str, str] = field(default_factory=dict)
    base_paths: tuple[BasePath, ...] = ()
    branch: str | None = None
    tag: str = ""
    transaction_file: str = ""
    writer_version: WriterVersion | None = None
    max_allocated_field_id: int | None = None
    blob_dataset_version: int = 0
    index_section: bytes | None = field(default=None, repr=False)
    inline_transaction: bytes | None = field(default=None, repr=False)
    legacy_head: bytes = field(default=b"", repr=False)
    path: str = ""
    file_size: int = 0

    @property
    def timestamp(self) -> dt.datetime:
        """Time of the commit, in UTC; cut to microseconds."""
        try:
            return _EPOCH + dt.timedelta(microseconds=self.timestamp_nanos // 1000)
        except OverflowError as error:
            raise CorruptFileError(f"{self.path}: the time of version {self.version} is out of range") from error

    @property
    def uses_stable_row_ids(self) -> bool:
        """Whether row ids stay the same when rows move."""
        return bool(self.reader_flags & Feature.STABLE_ROW_IDS)

    @property
    def num_rows(self) -> int | None:
        """Number of live rows, None when some fragment does not say (`Fragment.num_rows`)."""
        counts = [fragment.num_rows for fragment in self.fragments]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def max_field_id(self) -> int:
        """Highest field id in use or marked as used; a new field gets the next one. -1 without fields."""
        used = [self.schema.max_field_id]
        if self.max_allocated_field_id is not None:
            used.append(self.max_allocated_field_id)
        used.extend(max(file.fields, default=-1) for fragment in self.fragments for file in fragment.files)
        return max(used)

    @property
    def commit_id(self) -> tuple[int, str]:
        """What tells the commit of this version from any other: its time and the name of its transaction file."""
        return self.timestamp_nanos, self.transaction_file

    def fragment(self, fragment_id: int) -> Fragment | None:
        """The fragment of that id."""
        return next((fragment for fragment in self.fragments if fragment.id == fragment_id), None)


def read_manifest(store: ObjectStore, path: str) -> Manifest:
    """Read and check a manifest.

    Parameters
    ----------
    store, path
        The file.

    Raises
    ------
    MissingFileError
        There is no such file.
    CorruptFileError
        The bytes contradict the format.
    UnsupportedError
        The version needs a feature this release does not have.
    """
    manifest = decode_manifest(store.read(path), path)
    name = parse_manifest_name(path.rsplit("/", 1)[-1])
    if name is not None and name.version != manifest.version:
        raise CorruptFileError(f"{path}: holds version {manifest.version}, but its name means version {name.version}")
    return manifest


def read_commit_id(store: ObjectStore, path: str) -> tuple[int, str]:
    """`Manifest.commit_id` of a manifest file, without decoding the rest.

    Raises
    ------
    MissingFileError
        There is no such file.
    CorruptFileError
        It is no manifest.
    """
    _, message = _manifest_message(store.read(path), path)
    return _timestamp_nanos(message), message.transaction_file


def decode_manifest(data: bytes, path: str) -> Manifest:
    """Decode and check the content of a manifest file.

    Parameters
    ----------
    data
        The whole file.
    path
        Name of the file, for error messages.

    Raises
    ------
    CorruptFileError
        The bytes contradict the format.
    UnsupportedError
        The version needs a feature this release does not have.
    """
    position, message = _manifest_message(data, path)
    max_allocated = message.max_allocated_field_id if message.HasField("max_allocated_field_id") else None
    check_readable(message.reader_feature_flags, message.writer_feature_flags, max_allocated, path)
    check_fields(message.fields, path)
    fragments = _fragments(message, path)
    storage_version = _storage_version(message, fragments, path)
    schema = Schema.from_proto(message.fields, message.schema_metadata, where=path)
    if storage_version == LEGACY_VERSION:
        schema = with_dictionaries(schema, data, path, empty_is_null=not _is_from_0_4(message))
    index_position = message.index_section if message.HasField("index_section") else None
    transaction_position = _transaction_position(message)
    manifest = Manifest(
        version=message.version,
        schema=schema,
        fragments=fragments,
        storage_version=storage_version,
        timestamp_nanos=_timestamp_nanos(message),
        reader_flags=message.reader_feature_flags,
        writer_flags=message.writer_feature_flags,
        max_fragment_id=message.max_fragment_id if message.HasField("max_fragment_id") else None,
        next_row_id=message.next_row_id,
        config=dict(message.config),
        table_metadata=dict(message.table_metadata),
        base_paths=tuple(BasePath.from_proto(base) for base in message.base_paths),
        branch=message.branch if message.HasField("branch") else None,
        tag=message.tag,
        transaction_file=message.transaction_file,
        writer_version=_writer_version(message),
        max_allocated_field_id=max_allocated,
        blob_dataset_version=message.blob_dataset_version,
        index_section=_section(data, index_position, "index section", path),
        inline_transaction=_section(data, transaction_position, "transaction", path),
        legacy_head=_legacy_head(data, schema, [position, index_position, transaction_position]),
        path=path,
        file_size=len(data),
    )
    check_manifest(
        manifest.fragments,
        {base.id for base in manifest.base_paths},
        manifest.reader_flags,
        manifest.storage_version,
        manifest.transaction_file,
        path,
    )
    return manifest


def encode_manifest(manifest: Manifest) -> bytes:
    """Content of the file of a manifest: dictionary values, index list, transaction, manifest, footer."""
    message = _message(manifest)
    parts = [manifest.legacy_head]
    position = len(manifest.legacy_head)
    for name, section in (
        ("index_section", manifest.index_section),
        ("transaction_section", manifest.inline_transaction),
    ):
        if section is not None:
            setattr(message, name, position)
            parts += [_LENGTH.pack(len(section)), section]
            position += _LENGTH.size + len(section)
    encoded = message.SerializeToString()
    footer = _FOOTER.pack(position, *_FOOTER_VERSION, _MAGIC)
    return b"".join([*parts, _LENGTH.pack(len(encoded)), encoded, footer])


def _message(manifest: Manifest) -> table_pb2.Manifest:
    message = table_pb2.Manifest(
        fields=manifest.schema.to_proto(),
        fragments=[fragment.to_proto() for fragment in manifest.fragments],
        version=manifest.version,
        tag=manifest.tag,
        reader_feature_flags=manifest.reader_flags,
        writer_feature_flags=manifest.writer_flags,
        max_fragment_id=manifest.max_fragment_id,
        transaction_file=manifest.transaction_file,
        next_row_id=manifest.next_row_id,
        data_format=table_pb2.DataStorageFormat(file_format="lance", version=manifest.storage_version),
        config=manifest.config,
        table_metadata=manifest.table_metadata,
        base_paths=[base.to_proto() for base in manifest.base_paths],
        branch=manifest.branch,
        max_allocated_field_id=manifest.max_allocated_field_id,
        blob_dataset_version=manifest.blob_dataset_version,
    )
    for key, value in manifest.schema.metadata.items():
        message.schema_metadata[key] = value
    message.timestamp.seconds, message.timestamp.nanos = divmod(manifest.timestamp_nanos, 1_000_000_000)
    writer = manifest.writer_version
    if writer is not None:
        message.writer_version.CopyFrom(
            table_pb2.WriterVersion(
                library=writer.library,
                version=writer.version,
                prerelease=writer.prerelease,
                build_metadata=writer.build_metadata,
            )
        )
    return message


def _manifest_message(data: bytes, path: str) -> tuple[int, table_pb2.Manifest]:
    """Position and content of the manifest message of a file."""
    end = len(data) - _FOOTER.size
    if end < 0:
        raise CorruptFileError(f"{path}: has {len(data)} bytes, too few for a manifest")
    position, _major, _minor, magic = _FOOTER.unpack_from(data, end)
    if magic != _MAGIC:
        raise CorruptFileError(f"{path}: ends with {magic!r} instead of {_MAGIC!r}, so it is no manifest or cut short")
    if not 0 <= position <= end - _LENGTH.size:
        raise CorruptFileError(f"{path}: its footer puts the manifest at byte {position} of {len(data)}")
    (length,) = _LENGTH.unpack_from(data, position)
    start = position + _LENGTH.size
    if start + length != end:
        raise CorruptFileError(f"{path}: the manifest says it has {length} bytes, but there are {end - start}")
    return position, parse_message(table_pb2.Manifest, data[start:end], path)


def _timestamp_nanos(message: table_pb2.Manifest) -> int:
    return message.timestamp.seconds * 1_000_000_000 + message.timestamp.nanos


def _transaction_position(message: table_pb2.Manifest) -> int | None:
    if message.HasField("transaction_section"):
        return message.transaction_section
    if message.HasField("transaction_section_deprecated"):
        return message.transaction_section_deprecated
    return None


def _section(data: bytes, position: int | None, what: str, path: str) -> bytes | None:
    """A length-prefixed section in front of the footer."""
    if position is None:
        return None
    end = len(data) - _FOOTER.size
    if position > end - _LENGTH.size:
        raise CorruptFileError(f"{path}: puts the {what} at byte {position} of {len(data)}")
    (length,) = _LENGTH.unpack_from(data, position)
    start = position + _LENGTH.size
    if start + length > end:
        raise CorruptFileError(f"{path}: the {what} says it has {length} bytes, but there are {end - start}")
    return data[start : start + length]


def _legacy_head(data: bytes, schema: Schema, positions: list[int | None]) -> bytes:
    """What stands in front of all sections, if fields refer to it.

    The positions in it count from the start of the file, so a copy at the start of another manifest stays valid.
    """
    if not any(node.dictionary is not None and node.dictionary[1] > 0 for node in schema.walk()):
        return b""
    return data[: min(position for position in positions if position is not None)]


def _fragments(message: table_pb2.Manifest, path: str) -> tuple[Fragment, ...]:
    """The fragments; without their row counts if the release did not sign the manifest: it wrote wrong ones."""
    fragments = tuple(Fragment.from_proto(fragment, path) for fragment in message.fragments)
    return fragments if message.HasField("writer_version") else tuple(map(_without_counts, fragments))


def _without_counts(fragment: Fragment) -> Fragment:
    deletions = fragment.deletion_file
    unsure = replace(deletions, num_deleted_rows=0) if deletions is not None else None
    return replace(fragment, physical_rows=0, deletion_file=unsure)


def _is_from_0_4(message: table_pb2.Manifest) -> bool:
    """Whether a manifest has nothing that releases after 0.4 write."""
    flags = message.reader_feature_flags or message.writer_feature_flags
    later = ("max_fragment_id", "writer_version", "data_format")
    return not (flags or message.transaction_file or any(message.HasField(name) for name in later))


def _storage_version(message: table_pb2.Manifest, fragments: tuple[Fragment, ...], path: str) -> str:
    stated = message.data_format.version if message.HasField("data_format") else None
    if stated is not None and stated != LEGACY_VERSION:
        return stated
    found = frozenset[str]().union(*(fragment.storage_versions for fragment in fragments))
    if stated is not None:
        return next(iter(found)) if len(found) == 1 else stated
    if len(found) > 1 and LEGACY_VERSION in found:
        return (
            LEGACY_VERSION  # an old release appended its own files to a table of 2.x, and dropped what it did not know
        )
    if len(found) > 1:
        raise CorruptFileError(f"{path}: states no storage version, and its files have several: {sorted(found)}")
    if found:
        return next(iter(found))
    return "2.0" if message.writer_feature_flags & Feature.V2_FORMAT else LEGACY_VERSION


def _writer_version(message: table_pb2.Manifest) -> WriterVersion | None:
    if not message.HasField("writer_version"):
        return None
    writer = message.writer_version
    return WriterVersion(
        writer.library,
        writer.version,
        writer.prerelease if writer.HasField("prerelease") else None,
        writer.build_metadata if writer.HasField("build_metadata") else None,
    )
