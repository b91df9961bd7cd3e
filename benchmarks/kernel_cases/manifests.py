"""Manifest of a table of many fragments."""

from __future__ import annotations

import struct
from collections.abc import Callable

from kernel_cases.case import Case
from kernel_cases.records import FRAGMENTS, listed
from lancecodec import manifests


def scan() -> Case:
    body = listed()[0] + b"\x6a\x00\x7a\x05\x12\x032.2"
    data = struct.pack("<I", len(body)) + body + struct.pack("<qHH4s", 0, 0, 2, b"LANC")
    return Case(lambda: manifests.scan(data, FRAGMENTS), len(data))


CASES: dict[str, Callable[[], Case]] = {"manifests.scan": scan}
