"""Models of vector indices, which can be stored in files: centroids and codewords."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, InvalidInputError
from lance_dataset.file.standalone import LanceFileReader, LanceFileWriter

__all__ = ["IvfModel", "PqModel"]


class IvfModel:
    """Centroids of the partitions of a vector index.

    Parameters
    ----------
    centroids
        Fixed-size lists, one for each partition.
    distance_type
        ``l2``, ``cosine``, ``dot`` or ``hamming``.

    Attributes
    ----------
    centroids : pyarrow.FixedSizeListArray
    distance_type : str
    """

    def __init__(self, centroids: pa.FixedSizeListArray, distance_type: str) -> None:
        if not pa.types.is_fixed_size_list(centroids.type):
            raise TypeError(f"centroids must be fixed-size lists, not {centroids.type}")
        self.centroids = centroids
        self.distance_type = distance_type

    @property
    def num_partitions(self) -> int:
        """Number of centroids."""
        return len(self.centroids)

    def save(self, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> None:
        """Write the model to a Lance file.

        Parameters
        ----------
        uri
            Path or URI of the file, which is replaced.
        storage_options
            Options of the store.
        """
        _save(uri, "centroids", self.centroids, {"distance_type": self.distance_type}, storage_options)

    @classmethod
    def load(cls, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> IvfModel:
        """Read a model that `save` wrote.

        Parameters
        ----------
        uri
            Path or URI of the file.
        storage_options
            Options of the store.

        Raises
        ------
        MissingFileError
            The file does not exist.
        KeyError
            The file holds something else.
        CorruptFileError
            The file cannot be read.
        """
        array, metadata = _load(uri, "centroids", ["distance_type"], storage_options)
        return cls(array, metadata["distance_type"])


class PqModel:
    """Codewords of product quantization.

    Parameters
    ----------
    num_subvectors
        Number of parts of a vector.
    codebook
        ``2 ** num_bits`` fixed-size lists of the dimension. Their numbers, one after another, are the codewords of the
        first part, then those of the second, and so on.
    num_bits
        Bits of the number of a codeword: 8 or 4.

    Attributes
    ----------
    num_subvectors, num_bits : int
    codebook : pyarrow.FixedSizeListArray
    """

    def __init__(self, num_subvectors: int, codebook: pa.FixedSizeListArray, *, num_bits: int = 8) -> None:
        if not pa.types.is_fixed_size_list(codebook.type):
            raise TypeError(f"codebook must be fixed-size lists, not {codebook.type}")
        self.num_subvectors = num_subvectors
        self.codebook = codebook
        self.num_bits = num_bits

    @property
    def dimension(self) -> int:
        """Number of values of a vector."""
        return int(self.codebook.type.list_size)

    def save(self, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> None:
        """Write the model to a Lance file.

        Parameters
        ----------
        uri
            Path or URI of the file, which is replaced.
        storage_options
            Options of the store.
        """
        numbers = {"num_subvectors": str(self.num_subvectors), "num_bits": str(self.num_bits)}
        _save(uri, "codebook", self.codebook, numbers, storage_options)

    @classmethod
    def load(cls, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> PqModel:
        """Read a model that `save` wrote.

        Parameters
        ----------
        uri
            Path or URI of the file.
        storage_options
            Options of the store.

        Raises
        ------
        MissingFileError
            The file does not exist.
        KeyError
            The file holds something else.
        CorruptFileError
            The file cannot be read.
        """
        array, metadata = _load(uri, "codebook", ["num_subvectors"], storage_options)
        parts, bits = metadata["num_subvectors"], metadata.get("num_bits", "8")
        if not all(text.isascii() and text.isdecimal() and len(text) < 10 for text in (parts, bits)):
            raise CorruptFileError(f"{uri}: {parts!r} parts of {bits!r} bits are not numbers")
        return cls(int(parts), array, num_bits=int(bits))


def _save(
    uri: str | os.PathLike[str],
    name: str,
    array: pa.FixedSizeListArray,
    metadata: Mapping[str, str],
    storage_options: Mapping[str, str] | None,
) -> None:
    batch = pa.RecordBatch.from_arrays([array], [name])
    with LanceFileWriter(uri, batch.schema, storage_options=storage_options) as writer:
        writer.write_batch(batch)
        for key, value in metadata.items():
            writer.add_schema_metadata(key, value)


def _load(
    uri: str | os.PathLike[str], name: str, keys: list[str], storage_options: Mapping[str, str] | None
) -> tuple[pa.FixedSizeListArray, dict[str, str]]:
    reader = LanceFileReader(uri, storage_options)
    schema = reader.metadata().schema
    metadata = {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in (schema.metadata or {}).items()
    }
    for key in keys:
        if key not in metadata:
            raise KeyError(f"{uri}: has no {key} in its metadata, so it is another kind of model")
    if name not in schema.names or not pa.types.is_fixed_size_list(schema.field(name).type):
        raise InvalidInputError(f"{uri}: has no column {name} of fixed-size lists")
    column = reader.read_all().to_table().column(name).combine_chunks()
    if column.null_count or column.flatten().null_count:
        raise CorruptFileError(f"{uri}: there are nulls in the column {name}")
    return column, metadata
