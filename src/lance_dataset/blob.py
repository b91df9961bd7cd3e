"""Values of blob columns as binary files."""

from lance_dataset.api.blob import DEFAULT_BLOB_BUFFER_SIZE, BlobFile

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "BlobFile",
]
