from __future__ import annotations

import struct
from collections.abc import Callable

from codec_targets.chaos import Chaos
from codec_targets.records import record, varint
from lancecodec import manifests


def field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def size(c: Chaos) -> int:
    return c.random.choice([0, 5, 300, 2**31, 2**32 - 1, 2**63, 2**64 - 1]) if c.flag(0.2) else c.random.randint(0, 9)


def fragment(c: Chaos) -> bytes:
    parts = [field(1, size(c)), field(4, size(c))]
    for _ in range(c.random.randint(0, 3)):
        path = c.random.choice([b"a.lance", b"b-1_c.lance", b"../x", b""])
        parts.append(field(2, b"".join([field(1, path), field(4, 2), field(5, 2), field(6, size(c))])))
    if c.flag(0.3):
        parts.append(field(3, b"".join(field(number, size(c)) for number in range(1, 5))))
    if c.flag(0.1):
        parts.append(record(c, 1))
    return b"".join(parts)


def scan(c: Chaos) -> object:
    parts = [field(2, fragment(c)) for _ in range(c.random.randint(0, 5))]
    parts += [field(3, size(c)), field(9, size(c)), field(12, b"1-a.txn"), field(13, b""), field(15, b"\x12\x032.2")]
    parts.append(field(7, field(1, size(c)) + field(2, size(c))))
    section = struct.pack("<I", 3) + b"abc"
    if c.flag():
        parts.append(field(c.random.choice([6, 23]), 0 if c.flag(0.9) else size(c)))
    if c.flag(0.2):
        parts.append(record(c, 2))
    body = b"".join(parts)
    data = section + struct.pack("<I", len(body)) + body + struct.pack("<qHH4s", len(section), 0, 2, b"LANC")
    return manifests.scan(c.damaged(data, 0.4), c.random.choice([0, 3, 2**63 - 1, c.number()]))


TARGETS: dict[str, Callable[[Chaos], object]] = {"manifests.scan": scan}
