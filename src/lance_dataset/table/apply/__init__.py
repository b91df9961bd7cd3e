"""Building the manifest of the next version from the current manifest and an operation."""

from lance_dataset.table.apply.build import first_manifest, next_manifest

__all__ = ["first_manifest", "next_manifest"]
