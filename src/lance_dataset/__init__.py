"""Lance datasets from Python: files, tables, scans, random access."""

from lance_dataset._version import __version__

__all__ = ["__version__"]
