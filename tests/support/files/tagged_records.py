"""Tagged records (protobuf bytes) encoded without protobuf, as test data and as an oracle."""

from __future__ import annotations

from dataclasses import dataclass

#: A record: (field number, value) pairs; a value is an int (varint), bytes, a record, or a tuple of packed varints.
Record = list[tuple[int, object]]


def varint(value: int) -> bytes:
    value %= 1 << 64
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


@dataclass(frozen=True)
class Fixed:
    """Value of 4 or 8 bytes, which no column of numbers accepts."""

    data: bytes


def field(number: int, value: object) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, Fixed):
        return varint(number << 3 | (1 if len(value.data) == 8 else 5)) + value.data
    if isinstance(value, tuple):
        value = b"".join(map(varint, value))
    elif isinstance(value, list):
        value = encoded(value)
    assert isinstance(value, bytes)
    return varint(number << 3 | 2) + varint(len(value)) + value


def encoded(record: Record) -> bytes:
    return b"".join(field(number, value) for number, value in record)
