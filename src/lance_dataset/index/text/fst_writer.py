"""Writing dictionaries in the fst format from ordered keys; equal suffixes are stored once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lancecodec.search.automata import write_fst as write_automaton

__all__ = ["write_fst"]


def write_fst(entries: Sequence[tuple[bytes, int]]) -> bytes:
    """Encode a dictionary.

    Parameters
    ----------
    entries
        Distinct keys in ascending order, with numbers from 0 to 2**64 - 1.

    Returns
    -------
    bytes
        Identical to the output of the reference unless there are very many different nodes.
    """
    keys = [key for key, _ in entries]
    offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    return write_automaton(b"".join(keys), offsets.data, np.array([number for _, number in entries], np.uint64).data)
