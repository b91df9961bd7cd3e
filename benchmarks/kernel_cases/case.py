"""A benchmark of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["VALUES", "Case", "rng"]

SEED = 7
#: Default number of values: several times the size of a second-level cache, but small enough for a quick run.
VALUES = 1_000_000


@dataclass(frozen=True)
class Case:
    """A kernel call ready to be timed.

    Attributes
    ----------
    work
        Makes the call once.
    size
        Bytes on the decoded side: the output of a decoder, the input of an encoder, the data that a check reads. The
        kernel is compared with a copy of as many bytes.
    """

    work: Callable[[], object]
    size: int


def rng() -> np.random.Generator:
    """Return a generator of random numbers that are the same in every run."""
    return np.random.default_rng(SEED)
