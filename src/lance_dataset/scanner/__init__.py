"""What users hold of a scan: `LanceScanner`, and `ScannerBuilder` that makes one."""

from lance_dataset.scanner.builder import ScannerBuilder
from lance_dataset.scanner.options import ColumnOrdering
from lance_dataset.scanner.progress import ProgressOption
from lance_dataset.scanner.requests import resolve_request, serialize_row_addrs
from lance_dataset.scanner.running import LanceScanner
from lance_dataset.scanner.statistics import ScanStatistics

__all__ = [
    "ColumnOrdering",
    "LanceScanner",
    "ProgressOption",
    "ScanStatistics",
    "ScannerBuilder",
    "resolve_request",
    "serialize_row_addrs",
]
