"""Call every kernel with hostile arguments; the only acceptable outcomes are an answer and an ordinary exception.

Random calls find little unless something watches the memory, so ``--sanitize`` first builds the kernels with the
address and undefined-behaviour sanitizers of GCC and runs itself on that build. An exception prints its seed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = (ValueError, TypeError, OverflowError, BufferError, MemoryError)
NUMBERS = [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 1023, 1024, 1025, 2**31 - 1, 2**31, 2**32, 2**56, 2**60, 2**61, 2**62]
NUMBERS += [2**63 - 8, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -1, -2, -8, -(2**31), -(2**63), -(2**63) - 1]


class Chaos:
    """A source of arguments: mostly plausible ones, as a call that fails its first check tests nothing else."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)

    def number(self, plausible: int = 40) -> Any:
        kind = self.random.random()
        if kind < 0.8:
            return self.random.randint(0, max(plausible, 0))
        return self.random.choice(NUMBERS) if kind < 0.99 else self.random.choice([None, "x", 1.5])

    def size(self) -> int:
        return self.random.choice([0, 1, 2, 7, 8, 9, self.random.randint(0, 64), self.random.randint(0, 9000)])

    def content(self, size: int) -> np.ndarray:
        """Bytes: noise, ascending integers of some width, small integers, or all the same."""
        kind = self.random.randint(0, 3)
        if kind == 0:
            return self.rng.integers(0, 256, size, np.uint8)
        if kind == 1:
            return np.full(size, self.random.choice([0, 1, 0x7F, 0x80, 0xFF]), np.uint8)
        dtype = self.random.choice([np.uint8, np.uint16, np.int32, np.int64])
        values = self.rng.integers(0, self.random.choice([2, 5, 40]), size // np.dtype(dtype).itemsize + 1)
        if kind == 3:
            values = np.cumsum(values)
            if self.random.random() < 0.3:
                values[self.random.randrange(len(values))] = self.random.choice([-1, 2**40, -(2**63), 2**63 - 1])
        return np.resize(values.astype(dtype).view(np.uint8), size)

    def buffer(self, size: int | None = None) -> Any:
        """Exactly sized heap memory, so that a sanitizer sees the first byte past it; sometimes at an odd address."""
        if self.random.random() < 0.01:
            return self.random.choice([None, 5, "text", np.zeros(9, np.uint8)[::2]])
        size = self.size() if size is None else max(size, 0)
        skew = self.random.choice([0, 0, 1, 3])
        data = np.empty(size + skew, np.uint8)
        data[skew:] = self.content(size)
        return bytes(data) if skew == 0 and self.random.random() < 0.2 else data[skew:]

    def out(self, plausible: int) -> Any:
        """An output that usually suffices, exactly or nearly."""
        slack = self.random.choice([0, 0, 0, 1, 8, -1])
        return self.buffer(plausible + slack) if self.random.random() < 0.95 else self.buffer()

    def integers(self, top: int, count: int | None = None) -> Any:
        count = self.random.choice([0, 1, 8, 9, self.random.randint(0, 300)]) if count is None else max(count, 0)
        values = self.rng.integers(0, max(top, 1), count)
        if count and self.random.random() < 0.15:
            values[self.random.randrange(count)] = self.random.choice([-1, top, 2**62, 2**63 - 1, -(2**63)])
        if self.random.random() < 0.3:
            values.sort()
        if self.random.random() < 0.02:
            return values.astype(self.random.choice([np.int32, np.uint64, np.float64]))
        return values


def targets() -> dict[str, Callable[[Chaos], object]]:
    from lancecodec import bitmap, gather, offsets, utf8  # imported late: which build it is, is decided by then
    from lancecodec.pages import EndsPages, FixedPages

    def width_of(wide: bool) -> int:
        return 8 if wide else 4

    def decode(c: Chaos) -> object:
        count, wide = c.size(), c.random.random() < 0.5
        start = c.number(count)
        rows = count - start if isinstance(start, int) and 0 <= start <= count else count
        limit = c.number(10**6)
        adjustment = limit + c.random.choice([0, 1, 100]) if isinstance(limit, int) else c.number()
        stop = count if c.random.random() < 0.7 else c.number(count)
        out, validity = c.out((rows + 1) * width_of(wide)), c.out((rows + 7) // 8)
        return offsets.decode(c.out(8 * count), start, stop, adjustment, limit, wide, out, validity)

    def encode(c: Chaos) -> object:
        count, wide, bit = c.size(), c.random.random() < 0.5, c.random.randint(0, 20)
        validity = c.out((count + bit + 7) // 8) if c.random.random() < 0.6 else None
        length = count if c.random.random() < 0.8 else c.number()
        bit_or_worse = bit if c.random.random() < 0.8 else c.number()
        source = c.out((count + 1) * width_of(wide))
        adjustment = 2**63 - 1 if c.random.random() < 0.6 else c.number()
        return offsets.encode(source, wide, length, validity, bit_or_worse, c.number(), adjustment, c.out(8 * count))

    def gather_fixed(c: Chaos) -> object:
        width, index_width, count = c.number(40), c.random.choice([1, 1, 2, 4, 8, c.number()]), c.size()
        plausible = width if isinstance(width, int) and 0 <= width <= 100 else 8
        entry = index_width if index_width in (1, 2, 4, 8) else 1
        return gather.fixed(c.buffer(), width, c.out(count * entry), index_width, c.out(count * plausible))

    def gather_variable(c: Chaos) -> object:
        count, index_width = c.size() % 500, c.random.choice([1, 2, 4, 8])
        ends, places = np.sort(c.integers(300)), np.sort(c.integers(9000, count + 1))
        index = c.out(count * index_width)
        if c.random.random() < 0.5:
            return gather.variable_offsets(ends, index, index_width, c.integers(5, count + c.random.choice([0, 1])))
        return gather.variable(c.out(300), ends, index, index_width, places, c.out(9000))

    def expand(c: Chaos) -> object:
        begins, wide = c.integers(10**6), c.random.random() < 0.5
        return gather.expand_ranges(begins, c.out((len(begins) + 1) * width_of(wide)), wide, c.integers(9, c.size()))

    def fixed_pages(c: Chaos) -> object:
        starts = [0, *sorted(c.random.randint(0, 200) for _ in range(c.random.randint(0, 5)))]
        sizes = np.diff(starts).tolist()
        bits = c.random.choice([1, 8, 8, 16, 32, 64, 128, 24, 800, c.number()])
        plausible = bits if isinstance(bits, int) and 0 < bits < 1000 else 8
        present = c.random.random()
        values = [c.out((n * plausible + 7) // 8) if c.random.random() < 0.9 else None for n in sizes]
        validity = [c.out((n + 7) // 8) if c.random.random() < present else None for n in sizes]
        if c.random.random() < 0.05:
            starts[-1] = c.number()
        pages = FixedPages(starts, bits, values, validity)
        del values, validity
        rows = c.integers(max(starts[-1], 1))
        validity_out = c.out((len(rows) + 7) // 8) if pages.has_nulls or c.random.random() < 0.3 else None
        return pages.take(rows, c.out((len(rows) * plausible + 7) // 8), validity_out)

    def ends_page(c: Chaos, rows: int) -> Any:
        if c.random.random() < 0.1:
            return None
        codes, entries = None, 0
        if c.random.random() < 0.3:
            codes, entries = c.out(rows), c.random.choice([0, 1, 40, 255, c.number()])
        count = entries if codes is not None and isinstance(entries, int) and 0 <= entries < 300 else rows
        raw = np.cumsum(c.rng.integers(0, 9, count)).astype(np.uint64)
        limit = int(raw[-1]) if count else 0
        adjustment = limit + c.random.choice([0, 1, 1, 1, 1, 50])
        raw = raw + (c.rng.random(count) < 0.3).astype(np.uint64) * np.uint64(adjustment)
        ends = raw.view(np.uint8) if c.random.random() < 0.8 else c.out(8 * count)
        data = c.out(limit) if c.random.random() < 0.8 else None
        base = c.random.choice([0, 5, c.number()])
        return ends, adjustment, limit if c.random.random() < 0.9 else c.number(), base, data, codes, entries

    def ends_pages(c: Chaos) -> object:
        starts = [0, *sorted(c.random.randint(0, 200) for _ in range(c.random.randint(0, 5)))]
        pages = EndsPages(starts, [ends_page(c, n) for n in np.diff(starts).tolist()])
        rows, wide = c.integers(starts[-1]), c.random.random() < 0.5
        offsets, validity = c.out((len(rows) + 1) * width_of(wide)), c.out((len(rows) + 7) // 8)
        begins = c.integers(5, len(rows)) if c.random.random() < 0.5 else None
        total, _ = pages.take_offsets(rows, wide, offsets, validity, begins)
        if c.random.random() < 0.1:
            offsets = c.out((len(rows) + 1) * width_of(wide))
        return pages.take_bytes(rows, wide, offsets, c.out(min(total, 10_000)))

    def text(c: Chaos) -> object:
        pieces = ["plain", "é", "速度", "🚀", "a" * 40]
        data = "".join(c.random.choices(pieces, k=c.random.choice([1, 5, 300, 3000]))).encode()
        if c.random.random() < 0.5:
            data = data[: c.random.randint(0, len(data))] + bytes(c.buffer(c.random.randint(0, 4)))
        return utf8.validate(np.frombuffer(data, np.uint8).copy(), c.buffer(), c.random.random() < 0.5)

    return {
        "bitmap.pack": lambda c: bitmap.pack(c.buffer(n := c.size()), c.out((n + 7) // 8)),
        "bitmap.unpack": lambda c: bitmap.unpack(c.out(40), c.number(20), c.number(300), c.out(300)),
        "bitmap.copy": lambda c: bitmap.copy(c.out(40), c.number(20), c.number(300), c.out(40), c.number(20)),
        "bitmap.fill": lambda c: bitmap.fill(c.out(40), c.number(20), c.number(300), c.random.random() < 0.5),
        "bitmap.count": lambda c: bitmap.count(c.out(40), c.number(20), c.number(300)),
        "bitmap.gather": lambda c: bitmap.gather(
            c.out(40), c.number(320), i := c.integers(300), c.out((len(i) + 7) // 8)
        ),
        "offsets.decode": decode,
        "offsets.encode": encode,
        "gather.fixed": gather_fixed,
        "gather.variable": gather_variable,
        "gather.expand_ranges": expand,
        "pages.FixedPages": fixed_pages,
        "pages.EndsPages": ends_pages,
        "utf8.validate": text,
    }


def fuzz(seed: int, seconds: float, calls: int | None) -> None:
    """Run until the time is over or the calls are made; report how many calls of each target came to an answer."""
    table = targets()
    names = list(table)
    made = dict.fromkeys(names, 0)
    answered = dict.fromkeys(names, 0)
    stop = time.monotonic() + seconds
    number = 0
    while (number < calls) if calls is not None else (time.monotonic() < stop):
        name = names[number % len(names)]
        made[name] += 1
        try:
            table[name](Chaos(seed + number))
            answered[name] += 1
        except ALLOWED:
            pass
        except BaseException:
            print(f"{name} failed with seed {seed + number}", file=sys.stderr)
            raise
        number += 1
    for name in names:
        print(f"{name:22} {made[name]:8} calls, {answered[name]:8} answered")
        if made[name] > 200 and not answered[name]:
            raise SystemExit(f"{name}: no call was ever answered, so nothing was tested")


def sanitized(arguments: list[str]) -> int:
    """Build the kernels with sanitizers in a temporary copy of the sources, and run this script on it."""
    compiler = os.environ.get("CC", "gcc").split()[0]
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, scratch)
        ignored = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
        shutil.copytree(ROOT / "src" / "lancecodec", f"{scratch}/src/lancecodec", ignore=ignored)
        shutil.copytree(ROOT / "src" / "lance_dataset", f"{scratch}/src/lance_dataset", ignore=ignored)
        checks = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g"
        environment = {**os.environ, "CFLAGS": checks, "LDFLAGS": "-fsanitize=address,undefined"}
        build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(build, cwd=scratch, env=environment, check=True, stdout=subprocess.DEVNULL)
        environment = {
            **os.environ,
            "LD_PRELOAD": library,
            "PYTHONPATH": f"{scratch}/src",
            "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
        return subprocess.run([sys.executable, __file__, *arguments], env=environment, check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="first seed; call k uses seed + k")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--calls", type=int, help="make so many calls, however long they take")
    parser.add_argument("--sanitize", action="store_true", help="run on a build with sanitizers")
    options = parser.parse_args()
    if options.sanitize:
        sys.exit(sanitized([argument for argument in sys.argv[1:] if argument != "--sanitize"]))
    fuzz(options.seed, options.seconds, options.calls)


if __name__ == "__main__":
    main()
