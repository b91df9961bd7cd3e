"""Numbers and names in the form that plans show."""

from __future__ import annotations

from collections.abc import Sequence

from lance_dataset.scan.metrics import NodeMetrics

__all__ = ["SHOWN", "bytes_text", "counters_text", "listed", "part_of", "seconds_text"]

#: Number of names and ranges shown before the rest is only counted.
SHOWN = 12


def counters_text(node: NodeMetrics) -> str:
    """Summarize the counters of a step."""
    parts = [f"output_rows={node.rows}"]
    if node.batches:
        parts.append(f"output_batches={node.batches}")
    if node.bytes:
        parts.append(f"output_bytes={bytes_text(node.bytes)}")
    if node.seconds:
        parts.append(f"elapsed_compute={seconds_text(node.seconds)}")
    parts.extend(f"{name}={number}" for name, number in node.counts.items())
    return ", ".join(parts)


def bytes_text(size: float) -> str:
    """Format a number of bytes with a suitable unit."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"


def seconds_text(seconds: float) -> str:
    """Format a time with a suitable unit."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def listed(names: Sequence[str]) -> str:
    """Join names with commas; if there are many, only count the rest."""
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown


def part_of(part: int, whole: int) -> str:
    """Format a part of a whole, or only the whole if they are equal."""
    return f"{whole:,}" if part == whole else f"{part:,} of {whole:,}"
