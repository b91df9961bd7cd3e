"""Ratios by which this package is faster (or smaller) than each opponent, compared with their targets."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from contenders import OURS, REFERENCE

_REFERENCE_TARGETS = {
    "scan": 2.5,
    "column": 1.5,
    "take many": 10.0,
    "take one": 10.0,
    "take most": 4.0,
    "take threads": 5.0,
    "filter": 2.0,
    "count": 2.0,
    "write": 1.0,
    "file size": 1.0,
}
_PARQUET_TARGETS = {"scan": 3.0, "take many": 50.0, "take one": 50.0}
_VORTEX_TARGETS = {"scan": 1.0}


@dataclass(frozen=True)
class Opponent:
    """Column of the headline table.

    Attributes
    ----------
    ours
        Name of our contender.
    theirs
        Names of the opposing contenders; the best of them counts.
    targets
        Target ratio by kind of operation.
    """

    title: str
    ours: str
    theirs: tuple[str, ...]
    targets: Mapping[str, float]


def opponents(version: str) -> tuple[Opponent, ...]:
    """Return the opponents of this package at one file version."""
    ours, reference = f"{OURS[0]}-{version}", f"{REFERENCE[0]}-{version}"
    return (
        Opponent(reference, ours, (reference,), _REFERENCE_TARGETS),
        Opponent("on pylance's file", f"{ours}-on-pylance", (reference,), _REFERENCE_TARGETS),
        Opponent("unsynced", f"{ours}-unsynced", (reference,), _REFERENCE_TARGETS),
        Opponent("parquet-zstd", ours, ("parquet-zstd",), _PARQUET_TARGETS),
        Opponent("vortex (better)", ours, ("vortex", "vortex-mmap"), _VORTEX_TARGETS),
    )


def medians(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in times.items()}


def ratio_cell(opponent: Opponent, values: Mapping[str, float], kind: str | None) -> str:
    """Return a cell like ``2.61x`` or, if the target is missed, ``2.31x < 2.5``; ``-`` without figures."""
    theirs = [values[name] for name in opponent.theirs if name in values]
    if not theirs or opponent.ours not in values:
        return "-"
    ratio = min(theirs) / values[opponent.ours]
    target = opponent.targets.get(kind or "")
    return f"{ratio:.2f}x" if target is None or round(ratio, 2) >= target else f"{ratio:.2f}x < {target:g}"


def headline(
    version: str, figures: Mapping[str, Mapping[str, float]], kinds: Mapping[str, str | None]
) -> Iterator[list[str]]:
    """Return lines of the table, with the header first; `figures` are seconds or bytes by operation and contender."""
    columns = opponents(version)
    yield ["", *(opponent.title for opponent in columns)]
    for operation, values in figures.items():
        yield [operation, *(ratio_cell(opponent, values, kinds.get(operation)) for opponent in columns)]
