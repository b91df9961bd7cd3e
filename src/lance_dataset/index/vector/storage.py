"""File of a vector index with row ids and stored vectors, partition by partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.index.files import IndexTable
from lance_dataset.index.vector.ivf import IVF_KEY, IvfModel
from lance_dataset.index.vector.packing import Codes, pack_blocks, transposed, unpack_blocks, untransposed
from lance_dataset.index.vector.quantizers import Quantizer, RabitQuantizer, parse_quantizer

__all__ = [
    "DISTANCE_KEY",
    "METRICS",
    "ROW_ID",
    "STORAGE_FILE",
    "STORAGE_KEY",
    "VectorStorage",
    "column_numbers",
    "plain_codes",
    "stored_codes",
]

STORAGE_FILE = "auxiliary.idx"
ROW_ID = "_rowid"
DISTANCE_KEY = "distance_type"
#: Names of metrics, by their numbers in messages.
METRICS = ("l2", "cosine", "dot", "hamming")
STORAGE_KEY = "storage_metadata"


class VectorStorage:
    """The storage file, with its parameters checked.

    Parameters
    ----------
    table
        The file.
    family
        Storage of the vectors: ``FLAT``, ``PQ``, ``SQ`` or ``RQ``.

    Attributes
    ----------
    table
        The file.
    ivf : IvfModel
        Partitions of the file.
    quantizer : Quantizer
        Meaning of the codes.
    distance : str
        ``l2``, ``cosine``, ``dot`` or ``hamming``.

    Raises
    ------
    CorruptFileError
        Metadata or columns are missing, or contradict each other.
    """

    def __init__(self, table: IndexTable, family: str) -> None:
        self.table = table
        self._where = table.where
        self.distance = distance_name(entry(table, DISTANCE_KEY), table)
        self.ivf = IvfModel.decode(buffer(table, IVF_KEY), self._where)
        self.ivf.partitions.check_inside(table.num_rows, self._where)
        self.quantizer: Quantizer = parse_quantizer(
            family, entry(table, STORAGE_KEY), table.numbered_buffer, self._where
        )
        columns = {field.name: field.storage_type for field in table.schema.fields}
        if columns.get(ROW_ID) != pa.uint64():
            raise table.corrupt(f"the column {ROW_ID} is of {columns.get(ROW_ID)}, not uint64")
        self.quantizer.check_columns(columns, self._where)

    def read(self, start: int, stop: int) -> pa.RecordBatch:
        """Read rows ``[start, stop)`` of all columns.

        Raises
        ------
        CorruptFileError
            A value is null.
        """
        batch = self.table.read(start, stop)
        self.check_valid(batch)
        return batch

    def codes(self, partition: int) -> NDArray[Any]:
        """Return the stored vectors of a partition, row by row.

        Returns
        -------
        array [rows, width]
            Values of vectors, or bytes of codes.
        """
        start = int(self.ivf.partitions.offsets[partition])
        stop = start + int(self.ivf.partitions.lengths[partition])
        name = self.quantizer.code_column
        batch = self.table.read(start, stop, [name])
        self.check_valid(batch)
        return plain_codes(self.quantizer, column_numbers(batch.column(name)))

    def check_valid(self, batch: pa.RecordBatch) -> None:
        """Raise CorruptFileError if a column of the index has nulls."""
        for name in (ROW_ID, *self.quantizer.columns):
            if name in batch.schema.names and _has_nulls(batch.column(name)):
                raise CorruptFileError(f"{self._where}: there are nulls in the column {name}")


def column_numbers(array: pa.Array) -> NDArray[Any]:
    """Return the numbers, or lists of equal length ``[rows, width]``, of an array without nulls."""
    if not pa.types.is_fixed_size_list(array.type):
        return np.asarray(array)
    return np.asarray(array.flatten()).reshape(len(array), array.type.list_size)


def plain_codes(quantizer: Quantizer, stored: NDArray[Any]) -> NDArray[Any]:
    """Return the codes of a partition row by row; invert `stored_codes`."""
    if not quantizer.whole_partitions:
        return stored
    return unpack_blocks(stored) if isinstance(quantizer, RabitQuantizer) else untransposed(stored)


def stored_codes(quantizer: Quantizer, codes: Codes) -> Codes:
    """Return row-by-row codes of a partition in their stored layout."""
    if not quantizer.whole_partitions:
        return codes
    return pack_blocks(codes) if isinstance(quantizer, RabitQuantizer) else transposed(codes)


def entry(table: IndexTable, key: str) -> str:
    """Return an entry of the metadata; it must exist."""
    value = table.metadata.get(key)
    if value is None:
        raise table.corrupt(f"has no {key} in its metadata")
    return value


def buffer(table: IndexTable, key: str) -> bytes:
    """Return a global buffer that an entry of the metadata names; it must exist."""
    data = table.global_buffer(key)
    if data is None:
        raise table.corrupt(f"has no {key} in its metadata")
    return data


def distance_name(text: str, table: IndexTable) -> str:
    """Return the name of a distance, whatever case releases write it in, in lower case."""
    name = {"euclidean": "l2"}.get(text.lower(), text.lower())
    if name not in METRICS:
        raise table.corrupt(f"has the unknown distance {text!r}")
    return name


def _has_nulls(array: pa.Array) -> bool:
    if array.null_count:
        return True
    return pa.types.is_fixed_size_list(array.type) and array.flatten().null_count > 0
