from __future__ import annotations

from collections.abc import Callable

from codec_targets.chaos import Chaos
from codec_targets.records import record, varint
from lancecodec import metadata


def wrapped(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def encoding(c: Chaos, number: int) -> bytes:
    content = bytes(c.content(c.random.randint(0, 9)))
    return wrapped(number, wrapped(2, wrapped(1, content)))


def numbers(c: Chaos, number: int) -> bytes:
    values = [c.random.choice([0, 5, 300, 2**40, 2**63, 2**64 - 1]) for _ in range(c.random.randint(0, 4))]
    return wrapped(number, b"".join(map(varint, values)))


def page(c: Chaos) -> bytes:
    length = varint(3 << 3) + varint(c.random.choice([0, 7, 2**63]))
    parts = [numbers(c, 1), numbers(c, 2), length, encoding(c, 4)]
    if c.flag(0.2):
        parts.append(record(c, 1))
    return b"".join(parts)


def column(c: Chaos) -> object:
    parts = [
        encoding(c, 1),
        *(wrapped(2, page(c)) for _ in range(c.random.randint(0, 5))),
        numbers(c, 3),
        numbers(c, 4),
    ]
    data = c.damaged(b"".join(parts) if c.flag(0.8) else record(c, 3), 0.4)
    return metadata.scan_column(data, c.random.choice([0, 400, 2**40, 2**64 - 1]))


def descriptor(c: Chaos) -> object:
    data = wrapped(1, record(c, 2)) + varint(16) + varint(c.random.choice([0, 9, 2**64 - 1]))
    return metadata.scan_descriptor(c.damaged(data, 0.5))


def table(c: Chaos) -> object:
    limits = [c.random.choice([0, 1, 2**32, 2**63, 2**64 - 1]) for _ in range(3)]
    return metadata.entries_fit(c.buffer(), *limits)


def page_record(c: Chaos) -> object:
    ranges = [(c.number(), c.number()) for _ in range(c.random.randint(0, 5))]
    return metadata.page_record(ranges, c.number(), bytes(c.content(c.size())), c.number())


def column_head(c: Chaos) -> object:
    return metadata.column_head(bytes(c.content(c.size())))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "metadata.scan_column": column,
    "metadata.scan_descriptor": descriptor,
    "metadata.page_record": page_record,
    "metadata.column_head": column_head,
    "metadata.entries_fit": table,
}
