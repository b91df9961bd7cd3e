"""Metadata of a column with many pages."""

from __future__ import annotations

import struct
from collections.abc import Callable

from kernel_cases.case import Case
from lancecodec import metadata

PAGES = 10_000
#: Two buffers, a length, and an encoding of 40 bytes in its two wrappers.
_PAGE = b"\x0a\x04\x80\x01\x80\x02\x12\x04\x90\x4e\x90\x4e\x18\x80\x20\x22\x2c\x12\x2a\x0a\x28" + b"e" * 40
_ENCODING = b"\x0a\x08\x12\x06\x0a\x04kind"


def column() -> Case:
    data = _ENCODING + (b"\x12" + bytes([len(_PAGE)]) + _PAGE) * PAGES
    return Case(lambda: metadata.scan_column(data, 1 << 40), len(data))


def table() -> Case:
    data = b"".join(struct.pack("<QQ", 100 * number, 100) for number in range(PAGES))
    return Case(lambda: metadata.entries_fit(data, 0, 1 << 40, 1 << 40), len(data))


CASES: dict[str, Callable[[], Case]] = {"metadata.scan_column": column, "metadata.entries_fit": table}
