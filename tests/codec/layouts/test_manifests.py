"""Tests of manifests parsed without messages: the same result as protobuf, or left to protobuf."""

from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset._proto import table_pb2
from lancecodec import manifests

numbers = st.integers(0, 300) | st.integers(0, 2**32 - 1)
names = st.text("abcXYZ019-_", min_size=1, max_size=9)
files = st.builds(
    table_pb2.DataFile,
    path=names,
    fields=st.lists(st.integers(-1, 300), max_size=3),
    column_indices=st.lists(st.integers(-1, 300), max_size=3),
    file_major_version=st.just(2),
    file_minor_version=st.just(2),
    file_size_bytes=numbers,
    file_metadata_size_bytes=numbers,
)
deletions = st.builds(
    table_pb2.DeletionFile, file_type=st.integers(0, 1), read_version=numbers, id=numbers, num_deleted_rows=numbers
)
fragments = st.builds(
    table_pb2.DataFragment,
    id=numbers,
    files=st.lists(files, max_size=3),
    deletion_file=st.none() | deletions,
    physical_rows=numbers,
    inline_row_ids=st.none() | st.binary(max_size=5),
)
messages = st.builds(
    table_pb2.Manifest,
    fragments=st.lists(fragments, max_size=4),
    version=st.integers(0, 2**64 - 1),
    tag=names,
    reader_feature_flags=numbers,
    writer_feature_flags=numbers,
    max_fragment_id=st.none() | numbers,
    transaction_file=st.just("") | names,
    writer_version=st.just(table_pb2.WriterVersion(library="lance", version="1")),
    next_row_id=numbers,
    data_format=st.builds(table_pb2.DataStorageFormat, file_format=names, version=names),
    config=st.dictionaries(names, names, max_size=2),
    branch=st.none() | names,
)
sections = st.none() | st.binary(max_size=20)


def stored(
    message: table_pb2.Manifest, indices: bytes | None = None, transaction: bytes | None = None, extra: bytes = b""
) -> bytes:
    """Return the file of a manifest; `extra` follows the message as a part of it."""
    head = b""
    if indices is not None:
        message.index_section, head = len(head), head + struct.pack("<I", len(indices)) + indices
    if transaction is not None:
        message.transaction_section, head = len(head), head + struct.pack("<I", len(transaction)) + transaction
    body = message.SerializeToString() + extra
    return head + struct.pack("<I", len(body)) + body + struct.pack("<qHH4s", len(head), 0, 2, b"LANC")


def expected(message: table_pb2.Manifest, indices: bytes | None, transaction: bytes | None) -> tuple[object, ...]:
    data_files = [file for fragment in message.fragments for file in fragment.files]
    deleting = [fragment for fragment in message.fragments if fragment.HasField("deletion_file")]
    return (
        *(message.version, message.reader_feature_flags, message.writer_feature_flags),
        *(message.timestamp.seconds, message.timestamp.nanos, message.transaction_file.encode()),
        *(transaction is not None, indices or b"", message.data_format.SerializeToString()),
        (2, 2) if data_files else None,
        [file.path.encode() for file in data_files],
        [(each.id, int((file := each.deletion_file).file_type), file.read_version, file.id) for each in deleting],
        len(message.fragments),
        sum(fragment.physical_rows for fragment in message.fragments),
        sum(fragment.deletion_file.num_deleted_rows for fragment in deleting),
        sum(file.file_size_bytes for file in data_files),
    )


@given(messages, st.integers(-(2**40), 2**40), st.integers(0, 999_999_999), sections, sections)
def test_same_as_protobuf(
    message: table_pb2.Manifest, seconds: int, nanos: int, indices: bytes | None, transaction: bytes | None
) -> None:
    message.timestamp.seconds, message.timestamp.nanos = seconds, nanos
    data = stored(message, indices, transaction)
    assert manifests.scan(data, 100) == expected(message, indices, transaction)


def common() -> table_pb2.Manifest:
    message = table_pb2.Manifest(version=7)
    message.writer_version.library = "lance"
    message.data_format.version = "2.2"
    for number in range(3):
        fragment = message.fragments.add(id=number, physical_rows=10)
        fragment.files.add(path=f"{number}.lance", file_major_version=2, file_minor_version=2, file_size_bytes=99)
    return message


@pytest.mark.parametrize("most", [2, 0, -1, -(2**63)])
def test_too_many_files(most: int) -> None:
    data = stored(common())
    assert manifests.scan(data, 3) is not None
    assert manifests.scan(data, most) is None


def test_what_is_left_to_a_general_parser() -> None:
    changes = {
        "unsigned": lambda message: message.ClearField("writer_version"),
        "no format": lambda message: message.ClearField("data_format"),
        "base paths": lambda message: message.base_paths.add(id=1, path="/x"),
        "file in a base path": lambda message: setattr(message.fragments[1].files[0], "base_id", 1),
        "deletions in a base path": lambda message: setattr(message.fragments[1].deletion_file, "base_id", 1),
        "overlay": lambda message: message.fragments[1].overlays.add(),
        "folder in a path": lambda message: setattr(message.fragments[1].files[0], "path", "../x.lance"),
        "no path": lambda message: message.fragments[1].files[0].ClearField("path"),
        "hidden file": lambda message: setattr(message.fragments[1].files[0], "path", ".x"),
        "mixed versions": lambda message: setattr(message.fragments[1].files[0], "file_minor_version", 1),
        "large id": lambda message: setattr(message.fragments[1], "id", 2**32),
        "many rows": lambda message: setattr(message.fragments[1], "physical_rows", 2**63),
        "transaction elsewhere": lambda message: setattr(message, "transaction_file", "a/b"),
        "old transaction": lambda message: setattr(message, "transaction_section_deprecated", 0),
        "indices outside": lambda message: setattr(message, "index_section", 2**63),
        "field ids": lambda message: setattr(message, "max_allocated_field_id", 5),
        "clustering": lambda message: setattr(message, "max_clustering_id", 5),
    }
    assert manifests.scan(stored(common()), 3) is not None
    assert manifests.scan(stored(common()), 2) is None, "too many files"
    assert manifests.scan(stored(common(), extra=b"\xf8\x07\x01"), 3) is None, "unknown field 127"
    assert manifests.scan(stored(common(), extra=b"\x18"), 3) is None, "truncated"
    for name, change in changes.items():
        message = common()
        change(message)
        assert manifests.scan(stored(message), 100) is None, name


@pytest.mark.parametrize("data", [b"", b"LANC", bytes(16), bytes(12) + b"LANC", bytes(16) + b"LANC", b"\xff" * 40])
def test_files_that_are_no_manifests(data: bytes) -> None:
    assert manifests.scan(data, 100) is None


def test_damaged_files_are_read_as_protobuf_does_or_not_at_all() -> None:
    data, rng = stored(common(), b"indices", b"transaction"), random.Random(1)
    read = 0
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(rng.choice([1, 1, 2])):
            damaged[rng.randrange(len(damaged))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        cut = damaged[: rng.choice([len(damaged), len(damaged), rng.randrange(len(damaged))])]
        scanned = manifests.scan(bytes(cut), 99)
        if scanned is None:
            continue
        position = struct.unpack_from("<q", cut, len(cut) - 16)[0]
        with suppress(DecodeError):  # parts that are not needed are not looked at
            message = table_pb2.Manifest.FromString(bytes(cut[position + 4 : -16]))
            assert scanned[10] == [file.path.encode() for fragment in message.fragments for file in fragment.files]
            assert scanned[0] == message.version
            read += 1
    assert read > 300
