"""Tests that kernels release the GIL.

Every kernel call of a module is in a block without the GIL, except for the trivial ones listed here. The benchmarks of
every module run while another thread counts.
"""

from __future__ import annotations

import importlib
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from lancecodec import take_pages
from lancecodec.take import ColumnTaker, FragmentTaker, RowTaker

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "src" / "lancecodec").rglob("*.pyx"))
sys.path.append(str(ROOT / "benchmarks"))

EXTERN = re.compile(r'cdef extern from "kernels/[^"]*" nogil:\n((?:[ \t]+.*\n|\n)*)')
CALL = re.compile(r"\b(lc_\w+)\(")
#: Brief kernels: arithmetic on numbers, one value, a table of a fixed size; or called only to describe an error.
BRIEF = {
    *("lc_bits_to_bytes", "lc_flat_size", "lc_ool_size", "lc_sequence_top", "lc_fl_bits_known"),
    *("lc_variable_block_size", "lc_variable_chunks_bound", "lc_control_width", "lc_zip_control"),
    *("lc_fsl_init", "lc_fsl_max_rows"),
    *("lc_fsl_chunk_rows", "lc_fsst_bound", "lc_fsst_job_size", "lc_layer_valid", "lc_layers_number"),
    *("lc_load_offset", "lc_store_offset", "lc_zip_position", "lc_variable_chunk_value", "lc_code_at"),
    *("lc_fsst_lookup_fill", "lc_fsst_table_parse", "lc_fsst_table_write", "lc_utf8_fill", "lc_byte_entropy"),
    *("lc_codes_find_bad", "lc_plain_bytes"),
    # a take of few rows keeps the GIL, because other threads would keep it for longer than the take lasts
    *("lc_rows_find", "lc_rows_skip_deleted", "lc_take_expected"),
    *("lc_segments_add", "lc_column_take", "lc_array_make"),
    *("lc_key_rows_open", "lc_key_table_open", "lc_key_table_close"),
    *("lc_column_needs", "lc_blocks_reserve", "lc_blocks_enlarge"),
    # one allocation; the size of a query
    *("lc_nearest_open", "lc_nearest_close", "lc_query_size", "lc_element_width"),
    # distances of few vectors, for the same reason as takes of few rows
    *("lc_distances", "lc_query_length", "lc_least_distances"),
    *("lc_term_close", "lc_positions_close", "lc_cursor_start"),
    # the size of a batch, the number of lists, and freed memory
    *("lc_builder_batch", "lc_builder_lists", "lc_builder_close"),
    # a search of short lists keeps the GIL, because other threads would keep it for longer than the search lasts
    "lc_search_run",
    # the number of blocks of all files, which the GIL guards
    *("lc_blocks_bytes", "lc_blocks_mark", "lc_blocks_forget", "lc_blocks_drop", "lc_popcount64"),
    # fields of a page; freed memory
    *("lc_window_supports", "lc_spare_open", "lc_spare_close"),
    # one number, and the header of a small file
    *("lc_once_u64", "lc_arrow_only_batch"),
    # a field of a message from which Python objects are made as it is read
    *("lc_record_next", "lc_record_varint", "lc_record_signs"),
}
#: Sizes for benchmarks, by their names there, so that most calls take a millisecond or more, and few much more.
SIZES = {"SIZE": 8 << 20, "LARGE": 1 << 21, "ROWS": 1 << 14, "POOL": 2_000}
PATIENCE = 20.0
#: Functions that make an object of each thing they read, for which they need the GIL.
MAKES_OBJECTS = {
    "arrow_file.only_batch",
    "column_parts.find",
    "manifests.scan",
    "metadata.scan_column",
    "plain_columns.find",
}


def test_free_threading_is_not_declared() -> None:
    """Objects such as `TakenRows` and `KeyTable` change their state under the interpreter lock alone."""
    for path in (ROOT / "setup.py", *MODULES):
        assert "freethreading_compatible" not in path.read_text(encoding="utf-8")


def calls_with_the_gil(text: str) -> set[str]:
    """Return the kernels called outside of blocks without the GIL."""
    kernels = {name for block in EXTERN.findall(text) for name in CALL.findall(block)}
    found: set[str] = set()
    released: int | None = None
    for line in re.sub(r",\n\s+", ", ", EXTERN.sub("", text)).splitlines():  # signatures may take several lines
        depth = len(line) - len(line.lstrip())
        if line.strip() and released is not None and depth <= released:
            released = None
        if re.match(r"\s*(with nogil|cdef .*\bnogil):$", line):
            released = depth
        elif released is None:
            found |= kernels & set(CALL.findall(line))
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_kernels_are_called_without_the_gil(path: Path) -> None:
    assert calls_with_the_gil(path.read_text(encoding="utf-8")) <= BRIEF


def test_calls_with_the_gil_are_found() -> None:
    extern = 'cdef extern from "kernels/a.h" nogil:\n    int lc_a(int n)\n    int lc_b(int n)\n\n'
    text = "def f():\n    with nogil:\n        lc_a(1)\n    lc_b(1)\n"
    assert calls_with_the_gil(extern + text) == {"lc_b"}


def benchmarks() -> dict[str, tuple[ModuleType, Callable[[], Any]]]:
    """Return the first benchmark of each function."""
    found: dict[str, tuple[ModuleType, Callable[[], Any]]] = {}
    for path in sorted((ROOT / "benchmarks" / "kernel_cases").glob("[a-z]*.py")):
        module = importlib.import_module(f"kernel_cases.{path.stem}")
        for name, make in getattr(module, "CASES", {}).items():
            found.setdefault(name.split(",")[0], (module, make))
    return found


BENCHMARKS = benchmarks()


def lets_others_run(call: Callable[[], object], seconds: float) -> bool:
    """Return True if another thread ticks during one of the calls that fill the time.

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
        stop = time.monotonic() + seconds
        while time.monotonic() < stop:
            before = ticks
            call()
            if ticks > before:
                return True
        return False
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()


@pytest.mark.parametrize("name", sorted(BENCHMARKS.keys() - MAKES_OBJECTS))
def test_another_thread_makes_progress(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, make = BENCHMARKS[name]
    for constant, value in SIZES.items():
        if hasattr(module, constant):
            monkeypatch.setattr(module, constant, value)
    assert lets_others_run(make().work, PATIENCE)


@pytest.mark.parametrize(("rows", "size"), [(1 << 18, 8), (4, 4 << 20)], ids=["many rows", "large rows"])
@pytest.mark.parametrize("text", [False, True])
def test_another_thread_makes_progress_during_large_takes(rows: int, size: int, text: bool) -> None:
    """Takes that are large, in rows or in bytes, let another thread run; takes of few rows keep the GIL."""
    width, count = (-1 if text else size), min(rows, 1 << 12)
    if text:
        item = size.to_bytes(4, "little") + bytes(size)
        index = np.arange(count + 1, dtype=np.uint64) * len(item)
        page = take_pages.zipped(item * count, count, -1, index=index, index_width=8, offset_bits=32)
    else:
        page = take_pages.zipped(bytes(count * size), count, width)
    column = ColumnTaker([0, count], width, lambda _: page)
    shape = (width, False, False, (), 0)
    taker = RowTaker([shape], np.array([0, count]), lambda _: FragmentTaker([column], count, 0))
    found = [taker.numbers(np.arange(rows) % count) for _ in range(10)]
    assert lets_others_run(lambda: found and found.pop().decode(0), PATIENCE)


def test_the_measurement_notices_a_held_gil() -> None:
    assert not lets_others_run(lambda: sorted(range(100_000)), seconds=0.5)
