"""Kernels of the codec core, each compared with a memcpy of the number of bytes on the decoded side."""

from __future__ import annotations

from kernel_cases import discover
from kernel_cases.case import VALUES, Case
from kernels import interleaved, memcpy

CASES, BROKEN = discover()
if BROKEN:
    raise ImportError(f"kernels cannot be imported: {BROKEN}")


class Kernels:
    """`track_*` values are bytes of the decoded side per second, and times of a memcpy: higher is better."""

    params = tuple(CASES)
    param_names = ("kernel",)
    timeout = 120

    case: Case

    def setup(self, name: str) -> None:
        self.case = CASES[name]()

    def time_kernel(self, _name: str) -> None:
        self.case.work()

    def track_throughput(self, _name: str) -> float:
        seconds, _ = interleaved(self.case.work, memcpy(self.case.size))
        return self.case.size / seconds

    track_throughput.unit = "bytes/s"

    def track_ratio_to_memcpy(self, _name: str) -> float:
        seconds, base = interleaved(self.case.work, memcpy(self.case.size))
        return base / seconds

    track_ratio_to_memcpy.unit = "x"


class Memcpy:
    """The memcpy itself, to see how much of a change is due to the machine."""

    params = (VALUES, 8 * VALUES, 64 * VALUES)
    param_names = ("bytes",)

    def setup(self, size: int) -> None:
        self.work = memcpy(size)

    def time_call(self, _size: int) -> None:
        self.work()
