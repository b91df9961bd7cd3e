"""Counts of the requests to stores, and of what shards of MemWALs did, for OpenTelemetry."""

from lance_dataset.api.metrics import instrument_lance_metrics

__all__ = ["instrument_lance_metrics"]
