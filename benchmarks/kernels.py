"""How fast each kernel of the codec core is beside memcpy: ``python benchmarks/kernels.py [pattern]``.

A kernel's traffic is the bytes it reads and writes. The base is ``np.copyto`` of half as many bytes, which reads and
writes as much. Runs of kernel and base alternate, and medians are compared, so that a noisy machine disturbs both.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lancecodec import bitmap, gather, offsets, utf8
from lancecodec.pages import EndsPages, FixedPages

SEED = 7
ROUNDS = 25
#: Values a case works on: several times what fits a second-level cache, little enough for a quick run.
VALUES = 1_000_000
TAKEN = 250_000
PAGES = 16
MIXED_TEXT = "Größe, 速度, скорость and speed 🚀; "

Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A kernel call ready to be timed.

    Attributes
    ----------
    work
        Does it once.
    read, written
        Bytes one call must look at and must produce.
    """

    work: Work
    read: int
    written: int

    @property
    def traffic(self) -> int:
        return self.read + self.written


def random() -> np.random.Generator:
    return np.random.default_rng(SEED)


def pack() -> Case:
    values, out = random().integers(0, 2, VALUES * 8, np.uint8), np.empty(VALUES, np.uint8)
    return Case(lambda: bitmap.pack(values, out), values.nbytes, out.nbytes)


def unpack(offset: int) -> Case:
    bits, out = random().integers(0, 256, VALUES + 1, np.uint8), np.empty(VALUES * 8, np.uint8)
    return Case(lambda: bitmap.unpack(bits, offset, VALUES * 8, out), bits.nbytes, out.nbytes)


def copy(offset: int) -> Case:
    bits, out = random().integers(0, 256, VALUES + 1, np.uint8), np.empty(VALUES, np.uint8)
    return Case(lambda: bitmap.copy(bits, offset, VALUES * 8, out), bits.nbytes, out.nbytes)


def count() -> Case:
    bits = random().integers(0, 256, VALUES, np.uint8)
    return Case(lambda: bitmap.count(bits, 3, VALUES * 8 - 3), bits.nbytes, 0)


def gather_bits() -> Case:
    bits, out = random().integers(0, 256, VALUES // 8, np.uint8), np.empty(VALUES // 8, np.uint8)
    index = random().integers(0, VALUES, VALUES)
    return Case(lambda: bitmap.gather(bits, VALUES, index, out), index.nbytes + bits.nbytes, out.nbytes)


@dataclass(frozen=True)
class Ends:
    """Offsets of VALUES values of 0 to 15 items in both forms; every tenth one null if `nulls`."""

    nulls: bool

    def arrow(self, wide: bool) -> np.ndarray:
        lengths = random().integers(0, 16, VALUES)
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64 if wide else np.int32)

    def valid(self) -> np.ndarray:
        return random().random(VALUES) >= (0.1 if self.nulls else 0)

    def total(self) -> int:
        return int(self.arrow(True)[-1])

    def raw(self) -> np.ndarray:
        ends = self.arrow(True)[1:].astype(np.uint64)
        return ends + np.where(self.valid(), np.uint64(0), np.uint64(self.total() + 1))


def decode(wide: bool, nulls: bool) -> Case:
    ends = Ends(nulls)
    raw, total = ends.raw(), ends.total()
    out, validity = np.empty(VALUES + 1, np.int64 if wide else np.int32), np.empty((VALUES + 7) // 8, np.uint8)
    raw_bytes, out_bytes = raw.view(np.uint8), out.view(np.uint8)
    return Case(
        lambda: offsets.decode(raw_bytes, 0, VALUES, total + 1, total, wide, out_bytes, validity),
        raw.nbytes,
        out.nbytes + validity.nbytes,
    )


def encode(wide: bool, nulls: bool) -> Case:
    ends = Ends(nulls)
    source, total, out = ends.arrow(wide).view(np.uint8), ends.total(), np.empty(VALUES * 8, np.uint8)
    validity = np.packbits(ends.valid(), bitorder="little") if nulls else None
    return Case(
        lambda: offsets.encode(source, wide, VALUES, validity, 0, 0, total + 1, out),
        source.nbytes + (0 if validity is None else validity.nbytes),
        out.nbytes,
    )


def gather_fixed(width: int, index_width: int, entries: int) -> Case:
    """Decode of a dictionary of a few entries, or a gather from as many values as there are indices."""
    values, out = random().integers(0, 256, entries * width, np.uint8), np.empty(VALUES * width, np.uint8)
    index = random().integers(0, entries, VALUES).astype(f"<u{index_width}").view(np.uint8)
    return Case(
        lambda: gather.fixed(values, width, index, index_width, out), index.nbytes + VALUES * width, VALUES * width
    )


def gather_variable() -> Case:
    values = random().integers(0, 256, 20_000, np.uint8)
    value_offsets = np.linspace(0, len(values), 1_001).astype(np.int64)
    index = random().integers(0, 1_000, VALUES, np.uint32).view(np.uint8)
    out_offsets = np.empty(VALUES + 1, np.int64)
    out = np.empty(gather.variable_offsets(value_offsets, index, 4, out_offsets), np.uint8)
    return Case(
        lambda: gather.variable(values, value_offsets, index, 4, out_offsets, out),
        index.nbytes + out_offsets.nbytes + out.nbytes,
        out.nbytes,
    )


def expand() -> Case:
    ends = Ends(False).arrow(False)
    begins, out = random().integers(0, VALUES, VALUES), np.empty(int(ends[-1]), np.int64)
    ends_bytes = ends.view(np.uint8)
    return Case(lambda: gather.expand_ranges(begins, ends_bytes, False, out), begins.nbytes + ends.nbytes, out.nbytes)


def validate(text: str) -> Case:
    data = np.frombuffer((text * (8 * VALUES // len(text.encode()))).encode(), np.uint8)
    ends = np.linspace(0, len(data), 9).astype(np.int64)
    ends[1:-1] -= ends[1:-1] % len(text.encode())
    ends_bytes = ends.view(np.uint8)
    return Case(lambda: utf8.validate(data, ends_bytes, True), data.nbytes, 0)


def rows(in_order: bool) -> np.ndarray:
    taken = random().integers(0, VALUES, TAKEN)
    return np.sort(taken) if in_order else taken


def starts() -> list[int]:
    return np.linspace(0, VALUES, PAGES + 1).astype(int).tolist()


def take_fixed(width: int, nulls: bool, in_order: bool) -> Case:
    sizes = np.diff(starts())
    values: list = [random().integers(0, 256, size * width, np.uint8) for size in sizes]
    bits: list = [random().integers(0, 256, (size + 7) // 8, np.uint8) if nulls else None for size in sizes]
    pages = FixedPages(starts(), width * 8, values, bits)
    taken, out = rows(in_order), np.empty(TAKEN * width, np.uint8)
    validity = np.empty((TAKEN + 7) // 8, np.uint8) if nulls else None
    written = out.nbytes + (0 if validity is None else validity.nbytes)
    return Case(lambda: pages.take(taken, out, validity), taken.nbytes + written, written)


def ends_pages() -> EndsPages:
    descriptions: list = []
    for size in np.diff(starts()):
        ends = np.cumsum(random().integers(12, 29, size)).astype(np.uint64)
        total = int(ends[-1])
        data = random().integers(97, 123, total, np.uint8)
        descriptions.append((ends.view(np.uint8), total + 1, total, 0, data, None, 0))
    return EndsPages(starts(), descriptions)


def take_ends(in_order: bool) -> Case:
    """Both passes, as a take of strings runs them."""
    pages, taken = ends_pages(), rows(in_order)
    ends, validity = np.empty((TAKEN + 1) * 4, np.uint8), np.empty((TAKEN + 7) // 8, np.uint8)
    total, _ = pages.take_offsets(taken, False, ends, validity)
    out = np.empty(total, np.uint8)

    def work() -> None:
        pages.take_offsets(taken, False, ends, validity)
        pages.take_bytes(taken, False, ends, out)

    return Case(
        work, taken.nbytes * 2 + 16 * TAKEN + out.nbytes + ends.nbytes, ends.nbytes + validity.nbytes + out.nbytes
    )


CASES: dict[str, Callable[[], Case]] = {
    "bitmap.pack": pack,
    "bitmap.unpack": lambda: unpack(0),
    "bitmap.unpack, bit 3": lambda: unpack(3),
    "bitmap.copy": lambda: copy(0),
    "bitmap.copy, bit 3": lambda: copy(3),
    "bitmap.count": count,
    "bitmap.gather": gather_bits,
    "offsets.decode 32": lambda: decode(False, False),
    "offsets.decode 32, nulls": lambda: decode(False, True),
    "offsets.decode 64": lambda: decode(True, False),
    "offsets.decode 64, nulls": lambda: decode(True, True),
    "offsets.encode 32": lambda: encode(False, False),
    "offsets.encode 32, nulls": lambda: encode(False, True),
    "offsets.encode 64": lambda: encode(True, False),
    "offsets.encode 64, nulls": lambda: encode(True, True),
    "gather.fixed 1, dictionary u8": lambda: gather_fixed(1, 1, 200),
    "gather.fixed 4, dictionary u8": lambda: gather_fixed(4, 1, 200),
    "gather.fixed 8, dictionary u16": lambda: gather_fixed(8, 2, 2_000),
    "gather.fixed 4, random u32": lambda: gather_fixed(4, 4, VALUES),
    "gather.fixed 8, random u32": lambda: gather_fixed(8, 4, VALUES),
    "gather.fixed 16, random u64": lambda: gather_fixed(16, 8, VALUES),
    "gather.variable": gather_variable,
    "gather.expand_ranges": expand,
    "utf8.validate ascii": lambda: validate("a plain line of text; "),
    "utf8.validate mixed": lambda: validate(MIXED_TEXT),
    "utf8.validate one in 60": lambda: validate("x" * 60 + "é"),
    "FixedPages.take 4, sorted": lambda: take_fixed(4, False, True),
    "FixedPages.take 8, sorted": lambda: take_fixed(8, False, True),
    "FixedPages.take 8, random": lambda: take_fixed(8, False, False),
    "FixedPages.take 8, nulls": lambda: take_fixed(8, True, True),
    "FixedPages.take 16, sorted": lambda: take_fixed(16, False, True),
    "FixedPages.take 512, random": lambda: take_fixed(512, False, False),
    "EndsPages.take, sorted": lambda: take_ends(True),
    "EndsPages.take, random": lambda: take_ends(False),
}


def memcpy(size: int) -> Work:
    """A copy of `size` bytes between arrays that have been touched."""
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    return lambda: np.copyto(target, source)


def interleaved(first: Work, second: Work, rounds: int = ROUNDS) -> tuple[float, float]:
    """Median seconds of two kinds of work, run in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for work, sink in zip((first, second), times, strict=True):
            begin = time.perf_counter()
            work()
            sink.append(time.perf_counter() - begin)
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> None:
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"{'kernel':32} {'ms':>8} {'GB/s':>8} {'memcpy':>8} {'ratio':>7}")
    for name, make in CASES.items():
        if pattern not in name:
            continue
        case = make()
        taken, base = interleaved(case.work, memcpy(case.traffic // 2))
        rate, base_rate = case.traffic / taken / 1e9, case.traffic / base / 1e9
        print(f"{name:32} {taken * 1e3:8.3f} {rate:8.2f} {base_rate:8.2f} {rate / base_rate:6.0%}", flush=True)


if __name__ == "__main__":
    main()
