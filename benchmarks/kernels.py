"""Speed of each kernel of the codec core compared with memcpy: ``python benchmarks/kernels.py [pattern]``.

The cases are in ``kernel_cases``. The base is ``np.copyto`` of as many bytes as the decoded side of the kernel has.
Runs of kernel and base alternate, and medians are compared, so that a noisy machine disturbs both equally.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from kernel_cases import discover
from kernel_cases.case import Case

ROUNDS = 15

Work = Callable[[], object]


@dataclass(frozen=True)
class Measured:
    """Median times of a case and of its base.

    Attributes
    ----------
    name
        The case.
    size
        Bytes on the decoded side, and bytes copied by the base.
    seconds, memcpy_seconds
        Median time of one run of each.
    """

    name: str
    size: int
    seconds: float
    memcpy_seconds: float

    def line(self) -> str:
        rate, base = self.size / self.seconds / 1e9, self.size / self.memcpy_seconds / 1e9
        return f"{self.name:48} {self.seconds * 1e3:9.3f} {rate:8.2f} {base:8.2f} {rate / base:7.1%}"


def memcpy(size: int) -> Work:
    """Return a copy of `size` bytes between arrays that have been touched."""
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    return lambda: np.copyto(target, source)


def interleaved(first: Work, second: Work, rounds: int = ROUNDS) -> tuple[float, float]:
    """Return the median seconds of two workloads run alternately, after one warm-up run of each."""
    times: tuple[list[float], list[float]] = ([], [])
    for each in range(rounds + 1):
        for work, sink in zip((first, second), times, strict=True):
            begin = time.perf_counter()
            work()
            if each:
                sink.append(time.perf_counter() - begin)
    return statistics.median(times[0]), statistics.median(times[1])


def measure(name: str, case: Case, rounds: int = ROUNDS) -> Measured:
    """Time a case and a copy of its size."""
    return Measured(name, case.size, *interleaved(case.work, memcpy(case.size), rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="", help="run the cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs of each case and of its base")
    parser.add_argument("--json", type=Path, help="write the results to this file too")
    options = parser.parse_args()
    cases, broken = discover()
    chosen = {name: make for name, make in cases.items() if options.pattern in name}
    print(f"{'kernel':48} {'ms':>9} {'GB/s':>8} {'memcpy':>8} {'ratio':>7}")
    results = []
    for name, make in chosen.items():
        results.append(measure(name, make(), options.rounds))
        print(results[-1].line(), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    for module, error in broken.items():
        print(f"the cases of {module} were left out, as they cannot be imported: {error}", file=sys.stderr)
    if broken or not chosen:
        sys.exit(1 if chosen else f"no case has {options.pattern!r} in its name")


if __name__ == "__main__":
    main()
