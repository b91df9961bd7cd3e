"""From the manifest of a version and an operation to the manifest of the next version."""

from lance_dataset.table.apply.build import first_manifest, next_manifest

__all__ = ["first_manifest", "next_manifest"]
