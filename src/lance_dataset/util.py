"""Helpers for programs around datasets."""

from lance_dataset.io.option_values import strict_bool
from lance_dataset.table.cleanup.durations import parse_duration

__all__ = ["parse_duration", "strict_bool"]
