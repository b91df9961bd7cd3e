"""Inputs that change during a call, as a mapped file does that another process writes to.

What a kernel says is right must be right: offsets ascend and stay inside their bytes, whatever was loaded when. The
fuzz target ``flicker`` changes bytes before every load. The other tests here use a second process and a shared mapping.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from support.processes.toggled_file import toggled_view

from lancecodec import CodecError, fsst, offsets, utf8, variable
from lancecodec.search import postings

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 0.3
COUNT = 1000


def repeat(call: Callable[[], None]) -> None:
    """Call again and again; refusals are fine."""
    stop = time.monotonic() + SECONDS
    while time.monotonic() < stop:
        for _ in range(100):
            with suppress(CodecError):
                call()


def ascending(ends: np.ndarray, last: int) -> None:
    assert ends[0] >= 0
    assert (np.diff(ends) >= 0).all()
    assert ends[-1] <= last


def test_ends_of_2_0(tmp_path: Path) -> None:
    ends = np.arange(1, COUNT + 1, dtype="<u8") * 10
    found, validity = np.empty(COUNT + 1, np.int64), np.empty((COUNT + 7) // 8, np.uint8)
    with toggled_view(tmp_path / "file", ends.tobytes(), (ends // 7).tobytes()) as view:

        def call() -> None:
            offsets.decode(view, 0, COUNT, 10**6, 10 * COUNT, True, found.data, validity.data)
            ascending(found, 10 * COUNT)

        repeat(call)


def test_variable_width(tmp_path: Path) -> None:
    begin = 4 * (COUNT + 1)
    header = np.arange(begin, begin + 4 * (COUNT + 1), 4, dtype="<u4")
    content = header.tobytes() + bytes(4 * COUNT)
    found = np.empty(COUNT + 1, np.int32)
    values = np.empty(len(content), np.uint8)
    counts, ends = np.array([COUNT]), np.array([len(content)])
    other = (begin + (header - begin) // 7).astype("<u4").tobytes()
    with toggled_view(tmp_path / "file", content, other) as view:

        def call() -> None:
            written = variable.decode(view, False, counts, ends, COUNT, False, found.data, values.data)
            ascending(found, written)

        repeat(call)


def test_fsst(tmp_path: Path) -> None:
    table = bytearray(fsst.TABLE_SIZE)
    fsst.write_table([b"hello", b"world"], table)
    symbols = fsst.SymbolTable(table)
    codes, ends = bytes(COUNT), np.arange(1, COUNT + 1, dtype="<u8")
    found, out = np.empty(COUNT, np.int64), np.empty(8 * COUNT + 64, np.uint8)
    with toggled_view(tmp_path / "file", ends.tobytes(), (ends // 7).tobytes()) as view:

        def call() -> None:
            written = symbols.decode(codes, view, True, 0, COUNT, 0, True, found.data, out.data)
            ascending(found, written)

        repeat(call)


def test_text(tmp_path: Path) -> None:
    content = "ä".encode() * 2500
    out = bytearray(5000)
    with toggled_view(tmp_path / "file", content, b"a" * 5000) as view:

        def call() -> None:
            utf8.copy(view, np.array([0, 5000]), True, out)
            out.decode()

        repeat(call)


def test_positions(tmp_path: Path) -> None:
    """Positions are copied from where their checked offsets begin."""
    one, other = np.array([0, 4, 8], np.int64), np.array([-1 << 50, 4, 8], np.int64)
    with toggled_view(tmp_path / "file", one.tobytes(), other.tobytes()) as view:
        repeat(lambda: postings.Positions(bytes(8), view, None, postings.VARINT))


def test_every_load_is_checked() -> None:
    """The fuzz target whose memory changes between any two loads."""
    command = [sys.executable, str(ROOT / "scripts" / "fuzz_kernels.py"), "flicker", "--standalone", "--cc", "gcc"]
    done = subprocess.run(
        [*command, "--inputs", "4000", "--cflags", "-fsanitize=address,undefined -fno-sanitize-recover=undefined"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4000 inputs" in done.stdout
