"""Tests of the memory limit for protobuf messages."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from google.protobuf.message import Message

from lance_dataset._proto import file2_pb2, file_pb2, table_pb2
from lance_dataset.errors import CorruptFileError, MemoryLimitError
from lance_dataset.io.messages import message_memory, parse_message

COUNT = 200_000

#: Message class, serialized field, and how often it is repeated.
REPEATED: dict[str, tuple[type[Message], bytes, int]] = {
    "pages": (file2_pb2.ColumnMetadata, b"\x12\x00", COUNT),
    "pages of a row": (file2_pb2.ColumnMetadata, b"\x12\x04\x18\x01\x22\x00", COUNT),
    "fields": (file_pb2.Schema, b"\x0a\x00", COUNT),
    "names": (file_pb2.Schema, b"\x0a\x04\x12\x02ab", COUNT),
    "fragments": (table_pb2.Manifest, b"\x12\x00", COUNT),
    "files": (table_pb2.Manifest, b"\x12\x02\x12\x00", COUNT),
    "unpacked numbers": (file2_pb2.ColumnMetadata, b"\x18\x01", COUNT),
    "packed numbers": (file2_pb2.ColumnMetadata, b"\x1a" + b"\x80\x89\x7a" + bytes(2_000_000), 1),
    "entries": (file_pb2.Schema, file_pb2.Schema(metadata={f"{i}": b"" for i in range(COUNT)}).SerializeToString(), 1),
}

MEASURE = """
import pickle, sys

def used():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) * 1024

kept = []
for case, (kind, field, count) in pickle.load(sys.stdin.buffer).items():
    data = field * count
    before = used()
    kept.append(kind.FromString(data))
    print(case, used() - before, sep=":")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_estimates_are_upper_limits_near_the_truth() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], check=True, capture_output=True, input=pickle.dumps(REPEATED)
    )
    for line in done.stdout.decode().splitlines():
        case, measured = line.split(":")
        kind, field, count = REPEATED[case]
        estimate = message_memory(kind, field * count, "file", per_message=400)
        messages = 0 if "number" in case else COUNT * (1 + (case in ("files", "pages of a row")))
        assert 0.9 * int(measured) <= estimate - 400 * messages <= 6 * int(measured), case


def test_limits() -> None:
    fragments = b"\x12\x00" * 2_000_000
    with pytest.raises(MemoryLimitError, match=r"1\.manifest: the Manifest message needs"):
        parse_message(table_pb2.Manifest, fragments, "1.manifest")
    assert len(parse_message(table_pb2.Manifest, fragments, "", bytes_read=100_000_000).fragments) == 2_000_000
    numbers = b"\x1a" + b"\x80\x89\x7a" + bytes(2_000_000)
    parse_message(file2_pb2.ColumnMetadata, numbers, "")
    with pytest.raises(MemoryLimitError):
        parse_message(file2_pb2.ColumnMetadata, numbers, "", per_number=32)


def test_long_texts_are_no_reason_to_refuse() -> None:
    manifest = table_pb2.Manifest(tag="x" * 50_000_000)
    assert parse_message(table_pb2.Manifest, manifest.SerializeToString(), "") == manifest


@pytest.mark.parametrize("size", [1, 1_000_000])
def test_damaged_messages(size: int) -> None:
    for end in (b"\x0b", b"\xff", b"\x12\x05", b"\x00\x00"):
        with pytest.raises(CorruptFileError, match=r"7\.manifest: invalid Manifest message"):
            parse_message(table_pb2.Manifest, b"\x12\x00" * size + end, "7.manifest")
