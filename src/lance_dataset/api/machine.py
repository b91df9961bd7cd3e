"""Features of the processor that kernels use."""

from __future__ import annotations

import platform
from pathlib import Path

__all__ = ["simd_info"]

_CPU_INFO = Path("/proc/cpuinfo")
#: Features that kernels of some tier need.
_TIERS = (
    ("avx512", ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
    ("avx2", ("avx2",)),
)
_SHOWN = (
    *("sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi1", "bmi2"),
    *("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512fp16"),
)
#: Names that Linux has for features.
_LINUX_NAMES = {"sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "avx512fp16": "avx512_fp16"}


def simd_info() -> dict[str, str | list[str]]:
    """Return which vector instructions the kernels use on this machine.

    Returns
    -------
    dict
        ``tier``: ``avx512``, ``avx2``, ``neon``, or ``none`` for those that every processor of the architecture has;
        ``target_arch``: name of the architecture; ``host_features``: names of the features of the processor, as far as
        kernels may use them (Linux on x86_64 only).
    """
    arch = platform.machine().lower()
    arch = {"amd64": "x86_64", "arm64": "aarch64"}.get(arch, arch)
    features = _features() if arch == "x86_64" else []
    tier = next((name for name, needed in _TIERS if set(needed) <= set(features)), "none")
    return {"tier": "neon" if arch == "aarch64" else tier, "target_arch": arch, "host_features": features}


def _features() -> list[str]:
    try:
        lines = _CPU_INFO.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
    flags = next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())
    return [name for name in _SHOWN if _LINUX_NAMES.get(name, name) in flags]
