"""Tests of manifests: encoding, decoding, and feature flags."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.files.tagged_records import Fixed, field

from lance_dataset._proto import table_pb2
from lance_dataset.errors import (
    CorruptFileError,
    DatasetNotFoundError,
    InvalidInputError,
    LanceError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.apply.numbering import new_fragments
from lance_dataset.table.flags import Feature
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import (
    Manifest,
    WriterVersion,
    decode_manifest,
    encode_manifest,
    read_commit_id,
    read_manifest,
)
from lance_dataset.table.naming import Naming, manifest_name, parse_manifest_name
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import latest_version, list_versions, locate_version, version_as_of

FIXTURES = Path(__file__).parent.parent / "fixtures" / "table"
DATA_FILE = "1110000100100001001111110058859144a8ae661311cc678d.lance"
GOLDEN = (
    bytes.fromhex("730000000a1712016120ffffffffffffffffff012a05696e7436343001124812440a38")
    + DATA_FILE.encode()
    + bytes.fromhex("1201001a010020022802200318017a0c0a056c616e63651203322e32")
    + bytes.fromhex("0000000000000000000002004c414e43")
)


def edited(**changes: object) -> bytes:
    """Return the golden manifest with other top-level values."""
    message = table_pb2.Manifest.FromString(GOLDEN[4:-16])
    for name, value in changes.items():
        setattr(message, name, value)
    return wrapped(message)


def wrapped(message: table_pb2.Manifest) -> bytes:
    encoded = message.SerializeToString()
    return struct.pack("<I", len(encoded)) + encoded + GOLDEN[-16:]


@pytest.mark.parametrize("nanos", [0, 1, -5, 1_700_000_000_123_456_789, -(10**18) - 7])
@pytest.mark.parametrize("name", ["", "1-abc.txn", "ü.txn"])
def test_commit_id(nanos: int, name: str) -> None:
    """The id is read without the rest of the manifest."""
    message = table_pb2.Manifest.FromString(GOLDEN[4:-16])
    message.timestamp.FromNanoseconds(nanos)
    message.transaction_file = name
    data = wrapped(message)
    store = MemoryStore()
    store.put("/m", data)
    assert read_commit_id(store, "/m") == (nanos, name) == decode_manifest(data, "m").commit_id
    for size in (0, 10, len(data) - 1):
        store.put("/m", data[:size])
        with pytest.raises(CorruptFileError):
            read_commit_id(store, "/m")
    store.put("/m", data[:4] + b"\xff" * (len(data) - 20) + data[-16:])
    with pytest.raises(CorruptFileError):
        read_commit_id(store, "/m")


def test_golden() -> None:
    assert len(GOLDEN) == 135
    manifest = decode_manifest(GOLDEN, "m")
    assert manifest.version == 1
    assert manifest.num_rows is None  # the manifest has no signature, so its row counts are not trusted
    assert manifest.storage_version == "2.2"
    assert manifest.schema.names == ["a"]
    (fragment,) = manifest.fragments
    assert fragment.id == 0
    assert [(file.path, file.fields, file.column_indices) for file in fragment.files] == [(DATA_FILE, (0,), (0,))]
    again = decode_manifest(encode_manifest(manifest), "m")
    assert again.fragments == manifest.fragments
    assert again.schema == manifest.schema


def test_sections_are_found() -> None:
    manifest = decode_manifest(GOLDEN, "m")
    transaction = Transaction.decode(Transaction(0, parse_overwrite(manifest)).encode(), "t").encode()
    from dataclasses import replace

    full = replace(manifest, index_section=b"", inline_transaction=transaction)
    encoded = encode_manifest(full)
    again = decode_manifest(encoded, "m")
    assert again.index_section == b""
    assert again.inline_transaction == transaction
    # Releases before 14 put the position of the transaction elsewhere.
    message = table_pb2.Manifest.FromString(encoded[struct.unpack_from("<q", encoded, len(encoded) - 16)[0] + 4 : -16])
    message.transaction_section_deprecated = message.transaction_section
    message.ClearField("transaction_section")
    head = encoded[: 4 + 4 + len(transaction)]
    body = message.SerializeToString()
    old = head + struct.pack("<I", len(body)) + body + struct.pack("<q", len(head)) + GOLDEN[-8:]
    assert decode_manifest(old, "m").inline_transaction == transaction


def parse_overwrite(manifest):  # type: ignore[no-untyped-def]
    from lance_dataset.table.operations import Overwrite

    return Overwrite(manifest.schema, manifest.fragments)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GOLDEN[:15],
        GOLDEN[:-1],
        GOLDEN[:-1] + b"X",
        GOLDEN[1:],
        b"\0" + GOLDEN,
        GOLDEN[:-16] + struct.pack("<q", -1) + GOLDEN[-8:],
        GOLDEN[:-16] + struct.pack("<q", 2**62) + GOLDEN[-8:],
        GOLDEN[:-16] + struct.pack("<q", len(GOLDEN) - 19) + GOLDEN[-8:],
        edited(index_section=2**63),
        edited(index_section=5),
        edited(transaction_section=len(GOLDEN)),
        edited(transaction_file="../x"),
        edited(reader_feature_flags=2, writer_feature_flags=2),
        edited(reader_feature_flags=256),
        edited(writer_feature_flags=256),
        edited(writer_feature_flags=32768),
        edited(reader_feature_flags=32768, writer_feature_flags=32768),
        edited(max_allocated_field_id=3),
    ],
)
def test_broken_manifests(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_manifest(data, "m")


@pytest.mark.parametrize("bit", [6, 9, 12, 13, 16, 17, 40, 63])
def test_unknown_features(bit: int) -> None:
    with pytest.raises(UnsupportedError, match=str(1 << bit)):
        decode_manifest(edited(reader_feature_flags=1 << bit, writer_feature_flags=1 << bit), "m")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda m: setattr(m.fragments[0], "id", 2**32), CorruptFileError),
        (lambda m: m.fragments.add().CopyFrom(m.fragments[0]), CorruptFileError),
        (lambda m: setattr(m.fragments[0].files[0], "path", "/etc/passwd"), CorruptFileError),
        (lambda m: setattr(m.fragments[0].files[0], "path", "a/../../b"), CorruptFileError),
        (lambda m: setattr(m.fragments[0].files[0], "base_id", 0), CorruptFileError),
        (lambda m: m.fragments[0].files[0].fields.append(1), CorruptFileError),
        (lambda m: setattr(m.fragments[0].files[0], "file_minor_version", 9), UnsupportedError),
        (lambda m: setattr(m.fragments[0].files[0], "file_minor_version", 1), CorruptFileError),
        (lambda m: setattr(m.fragments[0].files[0], "file_major_version", 0), CorruptFileError),
        (lambda m: setattr(m.data_format, "version", "stable"), UnsupportedError),
        (lambda m: setattr(m.fragments[0].deletion_file, "num_deleted_rows", 4), CorruptFileError),
        (lambda m: setattr(m.fragments[0].deletion_file, "file_type", 7), UnsupportedError),
        (lambda m: setattr(m.fragments[0].deletion_file, "file_type", -1), UnsupportedError),
        (lambda m: setattr(m.fragments[0].deletion_file, "base_id", 1), CorruptFileError),
        (lambda m: m.fragments[0].MergeFromString(field(3, [(7, 2**64 - 1)])), CorruptFileError),
        (lambda m: setattr(m.fragments[0].deletion_file, "base_id", 2**32 - 1), CorruptFileError),
        (lambda m: setattr(m.fragments[0].files[0], "base_id", 2**32 - 1), CorruptFileError),
        (lambda m: setattr(m, "reader_feature_flags", 2), CorruptFileError),  # stable row ids
        (lambda m: setattr(m.fields[0], "id", -1), CorruptFileError),
        (lambda m: setattr(m.fields[0], "parent_id", 5), CorruptFileError),
        (lambda m: m.fields.add().CopyFrom(m.fields[0]), CorruptFileError),
        (lambda m: m.fragments[0].overlays.add(), UnsupportedError),
    ],
)
def test_contradictions(change, error) -> None:  # type: ignore[no-untyped-def]
    message = table_pb2.Manifest.FromString(GOLDEN[4:-16])
    message.writer_version.library, message.writer_version.version = "lance", "14.0.2"
    change(message)
    with pytest.raises(error):
        decode_manifest(wrapped(message), "m")


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (field(2, [(1, b"x"), (4, 2), (5, 2), (7, 2**64 - 1)]), CorruptFileError),  # a base path of -1
        (field(5, 7), CorruptFileError),  # invalid row ids
        (field(5, Fixed(b"12345678")), CorruptFileError),
        (field(3, [(1, 2**64 - 1)]), UnsupportedError),
    ],
)
def test_numbers_of_more_bits_and_other_kinds(more: bytes, error: type[Exception]) -> None:
    message = table_pb2.Manifest.FromString(GOLDEN[4:-16])
    message.writer_version.library, message.writer_version.version = "lance", "14.0.2"
    fragment = message.fragments[0].SerializeToString()
    if error is CorruptFileError and more[0] >> 3 == 5:
        message.reader_feature_flags = message.writer_feature_flags = int(Feature.STABLE_ROW_IDS)
    message.ClearField("fragments")
    encoded = message.SerializeToString() + field(2, fragment + more)
    with pytest.raises(error):
        decode_manifest(struct.pack("<I", len(encoded)) + encoded + GOLDEN[-16:], "m")


def _signed(*fragments: Fragment, **changes: object) -> Manifest:
    manifest = decode_manifest(GOLDEN, "m")
    return replace(manifest, fragments=fragments, writer_version=WriterVersion("lance", "14.0.2"), **changes)


def test_more_rows_than_64_bits_count() -> None:
    made = _signed(*(Fragment(i, (), physical_rows=2**62) for i in range(3)))
    assert decode_manifest(encode_manifest(made), "m").num_rows == 3 * 2**62


def test_no_row_ids_left() -> None:
    flags = int(Feature.STABLE_ROW_IDS)
    base = _signed(reader_flags=flags, writer_flags=flags, next_row_id=2**64 - 5)
    files = (DataFile("a", (0,), (0,), 2, 2),)
    (added,), next_row_id = new_fragments(base, [Fragment(0, files, physical_rows=4)])
    assert next_row_id == 2**64 - 1
    assert added.row_ids is not None
    with pytest.raises(InvalidInputError, match="row ids"):
        new_fragments(base, [Fragment(0, files, physical_rows=5)])


def test_pickled_and_copied() -> None:
    made = decode_manifest(GOLDEN, "m")
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made


def _samples() -> list[bytes]:
    paths = [
        "pylance-0.10.18-default/dict.lance/_versions/2.manifest",
        "pylance-1.0.0-2.0/ds.lance/_versions/4.manifest",
        "pylance-14.0.2-2.2/ds.lance/_versions/18446744073709551611.manifest",
    ]
    return [GOLDEN, *((FIXTURES / path).read_bytes() for path in paths)]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damaged_manifests_only_raise_our_errors(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(_samples())))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) : data.draw(st.integers(0, len(content)))]
    try:
        manifest = decode_manifest(bytes(content), "m")
        if manifest.inline_transaction is not None:
            Transaction.decode(manifest.inline_transaction, "t")
        _ = manifest.timestamp, manifest.num_rows, manifest.max_field_id
        encode_manifest(manifest)
    except LanceError:
        pass


@pytest.mark.parametrize(
    ("name", "version", "naming"),
    [
        ("7.manifest", 7, Naming.V1),
        ("18446744073709551614.manifest", 1, Naming.V2),
        ("d9223372036854775808.manifest", 2**63, Naming.DETACHED),
    ],
)
def test_names(name: str, version: int, naming: Naming) -> None:
    parsed = parse_manifest_name(name)
    assert parsed is not None
    assert (parsed.version, parsed.naming) == (version, naming)
    assert manifest_name(version, naming) == name


@pytest.mark.parametrize(
    "name",
    [
        "foo.txt",
        ".tmp_1234",
        "latest_version_hint.json",
        ".manifest",
        "x.manifest",
        "-1.manifest",
        "٣.manifest",
        "d5.manifest",
        "99999999999999999999.manifest",
        "18446744073709551613.manifest-5c0e",
        "d18446744073709551616.manifest",
    ],
)
def test_other_names(name: str) -> None:
    assert parse_manifest_name(name) is None


def test_versions(tmp_path: Path) -> None:
    store, root = MemoryStore(), "/t"
    with pytest.raises(DatasetNotFoundError, match="was not found"):
        latest_version(store, root)
    seconds = {1: 100, 3: 300, 7: 700}
    for version, time in seconds.items():
        message = table_pb2.Manifest.FromString(GOLDEN[4:-16])
        message.version, message.timestamp.seconds = version, time
        store.put(f"{root}/_versions/{manifest_name(version, Naming.V2)}", wrapped(message))
    store.put(f"{root}/_versions/d9223372036854775809.manifest", GOLDEN)
    store.put(f"{root}/_versions/.tmp_x", b"")
    assert [name.version for name in list_versions(store, root)] == [1, 3, 7]
    for moment, version in ((101, 1), (300, 1), (301, 3), (10_000, 7)):
        time = dt.datetime.fromtimestamp(moment, dt.timezone.utc)
        assert version_as_of(store, root, time).version == version
    with pytest.raises(VersionNotFoundError, match="earlier than the first version"):
        version_as_of(store, root, dt.datetime.fromtimestamp(100, dt.timezone.utc))
    for version in (2, 8, -1, 2**64):
        with pytest.raises(VersionNotFoundError):
            locate_version(store, root, version)
    assert locate_version(store, root, 2**63 + 1).endswith("d9223372036854775809.manifest")


def test_name_and_content_must_agree(tmp_path: Path) -> None:
    path = f"{tmp_path}/5.manifest"
    LocalStore().put(path, GOLDEN)
    with pytest.raises(CorruptFileError, match="version 1, but its name says version 5"):
        read_manifest(LocalStore(), path)
