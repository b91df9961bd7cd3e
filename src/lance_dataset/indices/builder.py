"""Step-wise builds of IVF_PQ indices, and the names of columns of the files that the steps exchange."""

from lance_dataset.api.vector_models import IvfModel, PqModel
from lance_dataset.api.vectors.builder import PARTITION_COLUMN, PQ_COLUMN, RESIDUAL_COLUMN, IndicesBuilder
from lance_dataset.records.index_config import IndexConfig

__all__ = ["PARTITION_COLUMN", "PQ_COLUMN", "RESIDUAL_COLUMN", "IndexConfig", "IndicesBuilder", "IvfModel", "PqModel"]
