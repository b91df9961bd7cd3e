"""How many rows of a merge are handled together: few enough for their bytes, many enough to be fast."""

from __future__ import annotations

from lance_dataset.changes.merge.source import Source

__all__ = ["bounded_rows", "source_row_bytes"]

_MOST_ROWS = 1 << 16
_BYTES = 16 << 20


def bounded_rows(row_bytes: float) -> int:
    """Rows of a batch, given the bytes of a row."""
    return int(max(1, min(_MOST_ROWS, _BYTES / max(row_bytes, 1))))


def source_row_bytes(source: Source) -> float:
    """Bytes of a row of a source, as its first rows have it."""
    sample = next(source.batches(), None)
    return 1.0 if sample is None else sample.nbytes / max(sample.num_rows, 1)
