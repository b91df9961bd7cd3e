from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case
from lancecodec import utf8

MIXED_TEXT = "Größe, 速度, скорость and speed 🚀; "


def validate(text: str, copy: bool = False) -> Case:
    data = np.frombuffer((text * (8 * VALUES // len(text.encode()))).encode(), np.uint8)
    ends = np.linspace(0, len(data), 9).astype(np.int64)
    ends[1:-1] -= ends[1:-1] % len(text.encode())
    ends_bytes = ends.view(np.uint8)
    if copy:
        out = np.empty_like(data)
        return Case(lambda: utf8.copy(data, ends_bytes, True, out), data.nbytes)
    return Case(lambda: utf8.validate(data, ends_bytes, True), data.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "utf8.validate, ascii": lambda: validate("a plain line of text; "),
    "utf8.validate, mixed": lambda: validate(MIXED_TEXT),
    "utf8.validate, one in 60": lambda: validate("x" * 60 + "é"),
    "utf8.copy, ascii": lambda: validate("a plain line of text; ", copy=True),
    "utf8.copy, mixed": lambda: validate(MIXED_TEXT, copy=True),
}
