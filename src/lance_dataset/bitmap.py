"""Sets of numbers of 32 bits."""

from lance_dataset.records.bitmap import Bitmap

__all__ = ["Bitmap"]
