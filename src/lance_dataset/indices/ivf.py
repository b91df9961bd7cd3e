"""Centroids of the partitions of a vector index, and the files that hold them."""

from lance_dataset.api.vector_models import IvfModel
from lance_dataset.file import LanceFileReader, LanceFileWriter

__all__ = ["IvfModel", "LanceFileReader", "LanceFileWriter"]
