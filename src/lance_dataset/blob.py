"""Blob columns: their fields and arrays, and their values as binary files."""

from lance_dataset.api.blob import DEFAULT_BLOB_BUFFER_SIZE, BlobFile
from lance_dataset.file.blob_descriptors import (
    BlobDescriptor,
    BlobDescriptorArrayBuilder,
    DedicatedBlobWriter,
    PackedBlobWriter,
)
from lance_dataset.types.blobs import Blob, BlobArray, BlobColumn, BlobIterator, BlobType, blob_array, blob_field

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobDescriptor",
    "BlobDescriptorArrayBuilder",
    "BlobFile",
    "BlobIterator",
    "BlobType",
    "DedicatedBlobWriter",
    "PackedBlobWriter",
    "blob_array",
    "blob_field",
]
