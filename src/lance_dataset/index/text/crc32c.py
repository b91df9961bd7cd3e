"""CRC-32C of bytes, computed for many bytes in parallel."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["crc32c"]

_POLYNOMIAL = 0x82F63B78


def _byte_table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return table


_TABLE = _byte_table()


def crc32c(data: bytes) -> int:
    """Return the checksum of at least four bytes.

    The bytes are cut into parts of equal length whose registers are shifted side by side. Another 32 registers tell
    how the length of a part changes a register that precedes it.
    """
    part = max(1, math.isqrt(len(data)))
    padded = np.zeros(-(-len(data) // part) * part, np.uint8)
    padded[len(padded) - len(data) :] = np.frombuffer(data, np.uint8)
    padded[len(padded) - len(data) :][:4] ^= 0xFF  # the register starts with all ones
    parts = padded.reshape(-1, part)
    units = np.uint32(1) << np.arange(32, dtype=np.uint32)
    registers = np.concatenate([np.zeros(len(parts), np.uint32), units])
    for column in np.concatenate([parts, np.zeros((32, part), np.uint8)]).T.copy():
        registers = _TABLE[(registers ^ column) & 0xFF] ^ (registers >> np.uint32(8))
    shifted = registers[len(parts) :].tolist()
    total = 0
    for register in registers[: len(parts)].tolist():
        for bit in range(32):
            if total >> bit & 1:
                register ^= shifted[bit]
        total = register
    return total ^ 0xFFFFFFFF
