"""Codewords of the product quantization of a vector index, and the files that hold them."""

from lance_dataset.api.vector_models import PqModel
from lance_dataset.file import LanceFileReader, LanceFileWriter

__all__ = ["LanceFileReader", "LanceFileWriter", "PqModel"]
