"""Metadata of a dataset as text."""

from lance_dataset.api.debug import diagnose, format_fragment, format_manifest, format_schema, list_transactions
from lance_dataset.records.diagnosis import Diagnosis, Finding

__all__ = [
    "Diagnosis",
    "Finding",
    "diagnose",
    "format_fragment",
    "format_manifest",
    "format_schema",
    "list_transactions",
]
