"""Statistics of a run of a scan."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import field

from lance_dataset.late_dataclass import dataclass
from lance_dataset.scan.metrics import ScanMetrics

__all__ = ["ScanStatistics", "statistics_of", "tell"]

_LOGGER = logging.getLogger("lance_dataset")


@dataclass(frozen=True)
class ScanStatistics:
    """Statistics of one run of a scan.

    Attributes
    ----------
    iops, requests
        Number of reads from the store, and number of requested reads before adjacent ones were joined. A page of a
        memory-mapped file counts when the dataset first opens it, and then stays open. A second run counts no reads,
        although it decodes as much.
    bytes_read
        Number of bytes of these reads.
    indices_loaded, parts_loaded, index_comparisons, index_cache_hits, index_cache_misses
        Always 0, since scans do not use indices.
    all_counts
        Other counts: ``rows_scanned``, ``fragments_scanned`` (fragments with rows that statistics do not exclude), and
        rows and batches of each step.
    all_times
        Time spent in each step, in nanoseconds summed over threads.
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
    """Return the statistics of a finished run.

    Parameters
    ----------
    metrics
        Metrics of its steps.
    reads
        Number of reads from the store, their bytes, and number of requests before adjacent ones were joined.
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
    """Pass statistics to the user's callback. Errors of the callback are logged, so they do not break the scan."""
    try:
        callback(statistics)
    except Exception:
        _LOGGER.exception("error in the scan_stats_callback %r", callback)
