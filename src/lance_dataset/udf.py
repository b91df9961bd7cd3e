"""User-defined functions that compute new columns batch by batch."""

from lance_dataset.api.dataset.schema_evolution import normalize_transform
from lance_dataset.changes.columns.udf import BatchUDF, BatchUDFCheckpoint, batch_udf

__all__ = [
    "BatchUDF",
    "BatchUDFCheckpoint",
    "batch_udf",
    "normalize_transform",
]
