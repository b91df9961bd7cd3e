"""Kernels must let other threads run: here one counts while a kernel works."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from lancecodec import bitmap, gather, general, offsets, utf8
from lancecodec.pages import EndsPages, FixedPages

SIZE = 3_000_000


def kernels() -> dict[str, Callable[[], object]]:
    """One call of each kernel on enough data for a few milliseconds."""
    zeros = np.zeros(8 * SIZE, np.uint8)
    rows = np.zeros(SIZE, np.int64)
    out, bits, wide_out = np.zeros(8 * SIZE + 8, np.uint8), np.zeros(SIZE, np.uint8), np.zeros(SIZE + 1, np.int64)
    text = "é".encode() * SIZE
    fixed = FixedPages([0, 8], 64, [zeros], [zeros])
    strings = EndsPages([0, 2], [(np.array([1, 2], np.uint64), 3, 2, 0, b"ab", None, 0)])
    ones = np.arange(SIZE + 1, dtype=np.int32)
    units = {scheme: general.compress(scheme, None, text) for scheme in ("lz4", "zstd")}
    return {
        "pack": lambda: bitmap.pack(zeros, bits),
        "unpack": lambda: bitmap.unpack(bits, 0, 8 * SIZE, out),
        "copy": lambda: bitmap.copy(zeros, 3, 63 * SIZE, out),
        "fill": lambda: bitmap.fill(out, 0, 64 * SIZE, False),
        "count": lambda: bitmap.count(zeros, 1, 63 * SIZE),
        "bitmap.gather": lambda: bitmap.gather(zeros, 8, rows, bits),
        "decode": lambda: offsets.decode(zeros, 0, SIZE, 1, 0, True, wide_out, bits),
        "encode": lambda: offsets.encode(zeros, False, SIZE, None, 0, 0, 1, out),
        "fixed": lambda: gather.fixed(zeros, 8, rows, 8, out),
        "variable_offsets": lambda: gather.variable_offsets(np.array([0, 1]), rows, 8, wide_out),
        "variable": lambda: gather.variable(b"x", np.array([0, 1]), rows[:-1], 8, rows, out),
        "expand_ranges": lambda: gather.expand_ranges(rows, ones, False, wide_out),
        "validate": lambda: utf8.validate(text, b"", False),
        "FixedPages.take": lambda: fixed.take(rows, out, bits),
        "take_offsets": lambda: strings.take_offsets(rows, False, out, bits),
        "compress lz4": lambda: general.compress("lz4", None, text),
        "compress zstd": lambda: general.compress("zstd", None, text),
        "decompress lz4": lambda: general.decompress("lz4", units["lz4"], expected_size=len(text)),
        "decompress zstd": lambda: general.decompress("zstd", units["zstd"], expected_size=len(text)),
        "take_bytes": lambda: strings.take_bytes(rows, False, ones, out),
    }


def lets_others_run(call: Callable[[], object], tries: int) -> bool:
    """Whether another thread ticks during a call.

    The counter sleeps between ticks, so it asks for the GIL anew each time. With a switch interval longer than the
    test, it gets the GIL during a call only if the call gives it up.
    """
    ticks = 0
    done = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=count)
    sys.setswitchinterval(100)
    try:
        thread.start()
        for _ in range(tries):
            before = ticks
            call()
            if ticks > before:
                return True
        return False
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()


@pytest.mark.parametrize("name", list(kernels()))
def test_another_thread_makes_progress(name: str) -> None:
    assert lets_others_run(kernels()[name], tries=200)


def test_the_measurement_notices_a_held_gil() -> None:
    assert not lets_others_run(lambda: sorted(range(100_000)), tries=20)
