"""Metadata of a dataset as text."""

from lance_dataset.api.debug import format_fragment, format_manifest, format_schema, list_transactions

__all__ = [
    "format_fragment",
    "format_manifest",
    "format_schema",
    "list_transactions",
]
