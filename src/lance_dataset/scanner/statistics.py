"""What a scan cost, for those who ask to be told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lance_dataset.query.metrics import ScanMetrics

__all__ = ["ScanStatistics", "statistics_of", "tell"]

_LOGGER = logging.getLogger("lance_dataset")


@dataclass(frozen=True)
class ScanStatistics:
    """What one run of a scan cost.

    Attributes
    ----------
    iops, requests
        Reads of the store, and reads that were asked for before neighbours were joined. Of memory-mapped files a
        page counts when a dataset first opens it, and then stays open: a second run counts nothing, though it decodes
        as much.
    bytes_read
        Bytes of those reads.
    indices_loaded, parts_loaded, index_comparisons, index_cache_hits, index_cache_misses
        0, as no scan uses an index.
    all_counts
        Further counts: ``rows_scanned``, ``fragments_scanned`` (those that have rows which statistics do not exclude),
        and the rows and batches of each step.
    all_times
        Nanoseconds spent in each step, summed over threads.
    """

    iops: int
    requests: int
    bytes_read: int
    indices_loaded: int = 0
    parts_loaded: int = 0
    index_comparisons: int = 0
    index_cache_hits: int = 0
    index_cache_misses: int = 0
    all_counts: Mapping[str, int] = field(default_factory=dict)
    all_times: Mapping[str, int] = field(default_factory=dict)


def statistics_of(metrics: ScanMetrics, reads: tuple[int, int, int]) -> ScanStatistics:
    """The statistics of a run that has ended.

    Parameters
    ----------
    metrics
        What its steps counted.
    reads
        Reads of the store, their bytes, and how many were asked for before neighbours were joined.
    """
    nodes = metrics.nodes
    counts = {"fragments_scanned": metrics.num_fragments}
    if "scan" in nodes:
        counts["rows_scanned"] = nodes["scan"].rows
    for name, node in nodes.items():
        counts |= {f"{name}_rows": node.rows, f"{name}_batches": node.batches}
        counts |= {f"{name}_{key}": number for key, number in node.counts.items()}
    times = {f"{name}_elapsed": int(node.seconds * 1e9) for name, node in nodes.items()}
    return ScanStatistics(reads[0], reads[2], reads[1], all_counts=counts, all_times=times)


def tell(callback: Callable[[ScanStatistics], object], statistics: ScanStatistics) -> None:
    """Hand statistics to a callback of the user, whose errors are logged: they must not spoil the scan."""
    try:
        callback(statistics)
    except Exception:
        _LOGGER.exception("error in the scan_stats_callback %r", callback)
