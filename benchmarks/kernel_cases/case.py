"""What a benchmark of a kernel is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["VALUES", "Case", "rng"]

SEED = 7
#: Values a case works on by default: several times what fits a second-level cache, little enough for a quick run.
VALUES = 1_000_000


@dataclass(frozen=True)
class Case:
    """A kernel call ready to be timed.

    Attributes
    ----------
    work
        Does it once.
    size
        Bytes on the decoded side: what a decoder produces, an encoder is given, a check looks at. The kernel is
        compared with a copy of as many bytes.
    """

    work: Callable[[], object]
    size: int


def rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(SEED)
