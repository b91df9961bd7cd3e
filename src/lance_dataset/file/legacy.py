"""Names of the legacy (0.1) format that tables need."""

from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.v0_1.dictionaries import empty_as_null, with_dictionaries, write_dictionaries

__all__ = ["LegacyFile", "empty_as_null", "with_dictionaries", "write_dictionaries"]
