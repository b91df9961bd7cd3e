"""Kernels of the codec core in bytes per second, each beside a memcpy that moves as many bytes as the kernel writes."""

from __future__ import annotations

from kernels import CASES, VALUES, Case, interleaved, memcpy

ROUNDS = 15


class Kernels:
    """`track_*` values are bytes per second; higher is better, and so is a higher ratio."""

    params = tuple(CASES)
    param_names = ("kernel",)
    timeout = 120

    case: Case

    def setup(self, name: str) -> None:
        self.case = CASES[name]()

    def time_call(self, _name: str) -> None:
        self.case.work()

    def track_throughput(self, _name: str) -> float:
        seconds, _ = interleaved(self.case.work, memcpy(self.case.traffic // 2), ROUNDS)
        return self.case.traffic / seconds

    track_throughput.unit = "bytes/s"

    def track_ratio_to_memcpy_of_traffic(self, _name: str) -> float:
        seconds, base = interleaved(self.case.work, memcpy(self.case.traffic // 2), ROUNDS)
        return base / seconds

    track_ratio_to_memcpy_of_traffic.unit = "x"

    def track_ratio_to_memcpy_of_output(self, _name: str) -> float:
        """A kernel without output (a count, a validation) is compared with a copy of what it reads."""
        seconds, base = interleaved(self.case.work, memcpy(self.case.written or self.case.read), ROUNDS)
        return base / seconds

    track_ratio_to_memcpy_of_output.unit = "x"


class Memcpy:
    """The base itself, to see how much of a change is the machine."""

    params = (VALUES, 8 * VALUES, 64 * VALUES)
    param_names = ("bytes",)

    def setup(self, size: int) -> None:
        self.work = memcpy(size)

    def time_call(self, _size: int) -> None:
        self.work()
