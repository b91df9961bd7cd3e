"""Counts of the requests to stores, and of what shards of MemWALs did, for OpenTelemetry."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from lance_dataset.errors import UnsupportedError
from lance_dataset.io.external.base import required_package
from lance_dataset.io.statistics import IOStats, process_statistics
from lance_dataset.memwal.counters import counters_of_all, summed_metrics

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

__all__ = ["instrument_lance_metrics"]

_REQUESTS: Final = "lance_object_store_requests_total", "", "Total number of object store requests, by operation."
_BYTES: Final = (
    "lance_object_store_request_bytes_total",
    "B",
    "Total bytes transferred by object store requests, by operation.",
)
_lock = threading.Lock()
_instrumented = False


def instrument_lance_metrics(meter_provider: MeterProvider | None = None) -> bool:
    """Report the requests of this process to stores, their bytes, and counters of shards to OpenTelemetry.

    The instruments are observable counters of the meter ``lance``, so they cost nothing until they are read:
    ``lance_object_store_requests_total`` and ``lance_object_store_request_bytes_total``, with the attribute
    ``operation``, which is ``get`` or ``put``. Reads and writes count as in `IOStats`. Each of `ShardStatus.metrics`
    that is a sum has the name ``lance_mem_wal_{name}_total``, and the attribute ``shard``, the URI of its folder.

    Parameters
    ----------
    meter_provider
        The provider to register the instruments with; None for the global one.

    Returns
    -------
    bool
        True. Only the first call in a process registers instruments.

    Raises
    ------
    ImportError
        OpenTelemetry is not installed.
    """
    global _instrumented
    try:
        metrics = required_package("opentelemetry.metrics", "otel", "instrument_lance_metrics")
    except UnsupportedError as error:
        raise ImportError(str(error)) from error
    with _lock:
        if not _instrumented:
            meter = (meter_provider or metrics.get_meter_provider()).get_meter("lance")
            reading: tuple[tuple[tuple[str, str, str], Callable[[IOStats], tuple[int, int]]], ...] = (
                (_REQUESTS, lambda stats: (stats.read_iops, stats.write_iops)),
                (_BYTES, lambda stats: (stats.read_bytes, stats.written_bytes)),
            )
            for (name, unit, description), values in reading:
                meter.create_observable_counter(
                    name, [_observer(metrics.Observation, values)], unit=unit, description=description
                )
            for name in summed_metrics():
                meter.create_observable_counter(
                    f"lance_mem_wal_{name}_total",
                    [_shard_observer(metrics.Observation, name)],
                    unit="ms" if name.endswith("_ms") else "",
                    description=f"Sum of {name} of the writers and merges of a MemWAL shard.",
                )
            _instrumented = True
    return True


def _shard_observer(observation: Callable[..., Any], name: str) -> Callable[[object], Iterable[Any]]:
    def observe(options: object) -> Iterator[Any]:
        for shard, counts in counters_of_all().items():
            if counts[name]:
                yield observation(counts[name], {"shard": shard})

    return observe


def _observer(
    observation: Callable[..., Any], values: Callable[[IOStats], tuple[int, int]]
) -> Callable[[object], Iterable[Any]]:
    def observe(options: object) -> Iterator[Any]:
        for operation, value in zip(("get", "put"), values(process_statistics()), strict=True):
            if value:
                yield observation(value, {"operation": operation})

    return observe
