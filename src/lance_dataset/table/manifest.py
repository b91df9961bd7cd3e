"""Manifests: the description of one version of a table, and its file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Protocol, TypeAlias, TypeVar, overload

from lance_dataset._proto import table_pb2
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.file.blob_fields import described_schema
from lance_dataset.file.legacy import with_dictionaries
from lance_dataset.file.versions import DEFAULT_VERSION
from lance_dataset.io.base import ObjectStore
from lance_dataset.late_dataclass import dataclass
from lance_dataset.limits import check_memory
from lance_dataset.properties import cached_property
from lance_dataset.table.checks import check_fields, check_known_versions, check_manifest
from lance_dataset.table.flags import Feature, check_readable
from lance_dataset.table.fragment import LEGACY_VERSION, Fragment
from lance_dataset.table.fragment_list import FragmentList
from lance_dataset.table.manifest_file import (
    FOOTER,
    FOOTER_VERSION,
    LENGTH,
    MAGIC,
    ManifestParts,
    commit_id,
    manifest_parts,
    read_section,
    transaction_position,
)
from lance_dataset.table.messages import parse_message
from lance_dataset.table.naming import parse_manifest_name
from lance_dataset.types.schema import Schema

__all__ = [
    "BasePath",
    "Decode",
    "Manifest",
    "Numbered",
    "WriterVersion",
    "commit_time",
    "decode_manifest",
    "encode_manifest",
    "read_commit_id",
    "read_manifest",
]

#: Bytes of memory of a decoded fragment, and of a data file in it.
_FRAGMENT_MEMORY = 600
_FILE_MEMORY = 400
#: Bytes of memory of a decoded field of a schema.
_FIELD_MEMORY = 400
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True)
class BasePath:
    """Another location with files of the table.

    Attributes
    ----------
    id
        Id that `DataFile.base_id` and similar fields refer to.
    path
        Absolute URI or path.
    name
        Name, None if it has no name.
    is_dataset_root
        True if the files are in subfolders as in a dataset, False if they are directly in the path.
    """

    id: int
    path: str
    name: str | None = None
    is_dataset_root: bool = False

    @property
    def location(self) -> str:
        """The path in the form used for comparisons."""
        return self.path.rstrip("/")

    @classmethod
    def from_proto(cls, message: table_pb2.BasePath) -> BasePath:
        """Build from a message."""
        name = message.name if message.HasField("name") else None
        return cls(message.id, message.path, name, message.is_dataset_root)

    def to_proto(self) -> table_pb2.BasePath:
        """Return the message of this base path."""
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
        Fragments in scan order. Any given sequence is converted to a `FragmentList`.
    storage_version
        Storage version of new data files (``"2.1"``). If the manifest does not state it, that of its files. Also that
        of its files if the manifest states 0.1 although all of them are of a later version, a mistake of release 0.16.
    timestamp_nanos
        Time of the commit, nanoseconds since the epoch.
    reader_flags, writer_flags
        Feature flags, see `Feature`.
    max_fragment_id
        Highest fragment id that any version used, None if there never was a fragment.
    next_row_id
        Next unused stable row id.
    config, table_metadata
        Library settings and custom metadata of the table.
    base_paths
        Other locations with files of the table.
    branch
        Name of the branch, None on the main one.
    tag
        Tag of the transaction.
    transaction_file
        Name of the transaction file, empty if there is none.
    writer_version
        Program that wrote the manifest, None for releases that did not record it.
    max_allocated_field_id
        Highest field id ever used, on tables that never reuse one.
    blob_dataset_version
        Version of the separate table with the blob columns in some old releases, 0 if there is none.
    index_section
        Serialized list of indices, None if there are none.
    inline_transaction
        Serialized transaction, None if it is only in a file.
    legacy_head
        Dictionary values at the start of manifests of 0.1 tables. `Field.dictionary` of the schema refers to it.
    path, file_size
        Path that the manifest was read from or written to, and its size.
    """

    version: int
    schema: Schema
    fragments: Sequence[Fragment] = ()
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
        """Time of the commit in UTC, truncated to microseconds."""
        return commit_time(self.timestamp_nanos, self.version, self.path)

    @property
    def uses_stable_row_ids(self) -> bool:
        """True if rows keep their ids when they move."""
        return bool(self.reader_flags & Feature.STABLE_ROW_IDS)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fragments", FragmentList.of(self.fragments))

    @property
    def fragment_list(self) -> FragmentList:
        """The fragments as a `FragmentList`."""
        assert isinstance(self.fragments, FragmentList)
        return self.fragments

    @property
    def num_rows(self) -> int | None:
        """Number of live rows, None if some fragment does not state it (`Fragment.num_rows`)."""
        counts = self.fragment_list.columns.num_rows
        return None if (counts < 0).any() else sum(counts.tolist())  # may exceed 64 bits in a damaged manifest

    @property
    def max_field_id(self) -> int:
        """Highest field id in use or marked as used, -1 without fields. A new field gets the next one."""
        used = [self.schema.max_field_id]
        if self.max_allocated_field_id is not None:
            used.append(self.max_allocated_field_id)
        in_files = self.fragment_list.columns.file_max_field_ids
        return max([*used, int(in_files.max())]) if len(in_files) else max(used)

    @property
    def commit_id(self) -> tuple[int, str]:
        """Identity of the commit of this version: its time and the name of its transaction file."""
        return self.timestamp_nanos, self.transaction_file

    @cached_property
    def described_schema(self) -> Schema:
        """Schema with every blob as a description."""
        return described_schema(self.schema)

    def fragment(self, fragment_id: int) -> Fragment | None:
        """Return the fragment with an id, None if it does not exist."""
        return self.fragment_list.find(fragment_id)


def commit_time(timestamp_nanos: int, version: int, path: str) -> dt.datetime:
    """Return the time of a commit in UTC, truncated to microseconds.

    Raises
    ------
    CorruptFileError
        It is out of range.
    """
    try:
        return _EPOCH + dt.timedelta(microseconds=timestamp_nanos // 1000)
    except OverflowError as error:
        raise CorruptFileError(f"{path}: the time of version {version} is out of range") from error


#: Decodes the bytes of a manifest file, given its path.
Decode: TypeAlias = Callable[[bytes, str], Manifest]


class Numbered(Protocol):
    """Result of reading a manifest, which has at least its version."""

    @property
    def version(self) -> int:
        """Version number."""


_Content = TypeVar("_Content", bound=Numbered)


@overload
def read_manifest(store: ObjectStore, path: str, decode: Decode | None = None) -> Manifest: ...
@overload
def read_manifest(store: ObjectStore, path: str, decode: Callable[[bytes, str], _Content]) -> _Content: ...
def read_manifest(store: ObjectStore, path: str, decode: Callable[[bytes, str], Numbered] | None = None) -> Numbered:
    """Read and check a manifest.

    Parameters
    ----------
    store, path
        The file.
    decode
        Used instead of `decode_manifest`, for example to use a cache of decoded manifests, or to decode only a part.

    Raises
    ------
    MissingFileError
        The file does not exist.
    CorruptFileError
        The bytes contradict the format.
    UnsupportedError
        The version needs a feature that this release does not have.
    """
    manifest = (decode or decode_manifest)(store.read(path), path)
    name = parse_manifest_name(path.rsplit("/", 1)[-1])
    if name is not None and name.version != manifest.version:
        raise CorruptFileError(f"{path}: contains version {manifest.version}, but its name says version {name.version}")
    return manifest


def read_commit_id(store: ObjectStore, path: str) -> tuple[int, str]:
    """Read `Manifest.commit_id` of a manifest file, without decoding the rest.

    Raises
    ------
    MissingFileError
        The file does not exist.
    CorruptFileError
        The file is not a manifest.
    """
    return commit_id(store.read(path), path)


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
        The version needs a feature that this release does not have.
    """
    parts = manifest_parts(data, path)
    message = parts.message
    max_allocated = message.max_allocated_field_id if message.HasField("max_allocated_field_id") else None
    check_readable(message.reader_feature_flags, message.writer_feature_flags, max_allocated, path)
    fragments = _fragments(parts, path)
    storage_version = _storage_version(message, fragments, path)
    schema = _schema(parts, path)
    if storage_version == LEGACY_VERSION:
        schema = with_dictionaries(schema, data, path, empty_is_null=not _is_from_0_4(message))
    index_position = message.index_section if message.HasField("index_section") else None
    inline_position = transaction_position(message)
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
        index_section=read_section(data, index_position, "index section", path),
        inline_transaction=read_section(data, inline_position, "transaction", path),
        legacy_head=_legacy_head(data, schema, [parts.position, index_position, inline_position]),
        path=path,
        file_size=len(data),
    )
    checked = check_manifest(
        fragments,
        {base.id for base in manifest.base_paths},
        manifest.reader_flags,
        manifest.storage_version,
        manifest.transaction_file,
        path,
    )
    return replace(manifest, fragments=checked)


def encode_manifest(manifest: Manifest) -> bytes:
    """Encode a manifest file: dictionary values, index list, transaction, manifest, footer."""
    message = _message(manifest)
    parts = [manifest.legacy_head]
    position = len(manifest.legacy_head)
    for name, section in (
        ("index_section", manifest.index_section),
        ("transaction_section", manifest.inline_transaction),
    ):
        if section is not None:
            setattr(message, name, position)
            parts += [LENGTH.pack(len(section)), section]
            position += LENGTH.size + len(section)
    fields = table_pb2.Manifest(fields=manifest.schema.to_proto()).SerializeToString()
    # Concatenated messages are one message, so fragments are not decoded into objects and fields keep their place.
    encoded = b"".join([fields, manifest.fragment_list.data, message.SerializeToString()])
    footer = FOOTER.pack(position, *FOOTER_VERSION, MAGIC)
    return b"".join([*parts, LENGTH.pack(len(encoded)), encoded, footer])


def _message(manifest: Manifest) -> table_pb2.Manifest:
    """Return the message without its fields and fragments, which are written before the rest."""
    message = table_pb2.Manifest(
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


def _timestamp_nanos(message: table_pb2.Manifest) -> int:
    return message.timestamp.seconds * 1_000_000_000 + message.timestamp.nanos


def _legacy_head(data: bytes, schema: Schema, positions: list[int | None]) -> bytes:
    """Return the bytes before all sections if fields refer to them.

    Positions in them count from the start of the file, so a copy at the start of another manifest stays valid.
    """
    if not any(node.dictionary is not None and node.dictionary[1] > 0 for node in schema.walk()):
        return b""
    return data[: min(position for position in positions if position is not None)]


def _schema(parts: ManifestParts, path: str) -> Schema:
    """Return the schema, cached because versions of a table mostly share it."""
    metadata = tuple(sorted(parts.message.schema_metadata.items()))
    try:
        return _known_schema(parts.fields, metadata).anew()
    except LanceError:  # again, so that the error names the file
        return _read_schema(parts.fields, dict(metadata), path)


@lru_cache(maxsize=16)
def _known_schema(fields: bytes, metadata: tuple[tuple[str, bytes], ...]) -> Schema:
    return _read_schema(fields, dict(metadata), "schema")


def _read_schema(fields: bytes, metadata: Mapping[str, bytes], where: str) -> Schema:
    messages = parse_message(table_pb2.Manifest, fields, where, per_message=_FIELD_MEMORY).fields
    check_fields(messages, where)
    return Schema.from_proto(messages, metadata, where=where)


def _fragments(parts: ManifestParts, path: str) -> FragmentList:
    """Return the fragments.

    Releases that did not sign the manifest wrote wrong row counts, which are left out.
    """
    fragments = FragmentList(parts.fragments, path)
    if parts.message.HasField("writer_version"):
        return fragments
    columns = fragments.columns
    needed = _FRAGMENT_MEMORY * len(columns.ids) + _FILE_MEMORY * len(columns.file_owners)
    check_memory(needed, len(parts.fragments), f"{path}: a list of {len(columns.ids):,} fragments")
    return FragmentList.of(map(_without_counts, fragments), path)


def _without_counts(fragment: Fragment) -> Fragment:
    deletions = fragment.deletion_file
    unsure = replace(deletions, num_deleted_rows=0) if deletions is not None else None
    return replace(fragment, physical_rows=0, deletion_file=unsure)


def _is_from_0_4(message: table_pb2.Manifest) -> bool:
    """Return True if a manifest has nothing that only releases after 0.4 write."""
    flags = message.reader_feature_flags or message.writer_feature_flags
    later = ("max_fragment_id", "writer_version", "data_format")
    return not (flags or message.transaction_file or any(message.HasField(name) for name in later))


def _storage_version(message: table_pb2.Manifest, fragments: FragmentList, path: str) -> str:
    check_known_versions(fragments, path)
    stated = message.data_format.version if message.HasField("data_format") else None
    if stated is not None and stated != LEGACY_VERSION:
        return stated
    found = fragments.columns.storage_versions
    if stated is not None:
        return next(iter(found)) if len(found) == 1 else stated
    if len(found) > 1 and LEGACY_VERSION in found:
        return LEGACY_VERSION  # an old release appended its own files to a table of 2.x, and dropped unknown fields
    if len(found) > 1:
        raise CorruptFileError(f"{path}: does not state a storage version, and its files have several: {sorted(found)}")
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
