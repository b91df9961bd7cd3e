"""Files of a segment of a vector index, in one form for all formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.vector.graph import GraphRows, graph_rows
from lance_dataset.index.vector.index_file import INDEX_FILE, VectorIndexFile
from lance_dataset.index.vector.legacy import LegacyVectorIndex, is_legacy
from lance_dataset.index.vector.packing import pack_blocks, untransposed
from lance_dataset.index.vector.quantizers import ProductQuantizer, Quantizer, RabitQuantizer
from lance_dataset.index.vector.rabit_codes import unpacked_blocks, unpacked_stream
from lance_dataset.index.vector.storage import METRICS, ROW_ID, STORAGE_FILE, VectorStorage, column_numbers
from lance_dataset.index.vector.tensors import decode_tensor

__all__ = ["Source", "StoredRows", "open_source"]


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows of a partition.

    Attributes
    ----------
    codes
        Vectors or codes; codes of product quantization row by row with graphs, otherwise as they are stored; signs of
        RaBitQ in blocks.
    ids : uint64[rows]
        Their row ids.
    extra : uint8[rows, dimension]
        Other bits of RaBitQ; None without any.
    factors
        Factors of RaBitQ, float32[rows] each.
    """

    codes: NDArray[Any]
    ids: NDArray[np.uint64]
    extra: NDArray[np.uint8] | None = None
    factors: tuple[NDArray[np.float32], ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of memory, those of mapped files included."""
        arrays = [self.codes, self.ids, *self.factors] + ([] if self.extra is None else [self.extra])
        return sum(array.nbytes for array in arrays)


class Source(Protocol):
    """Open files of a segment.

    Attributes
    ----------
    kind
        Name of the kind of index.
    metric
        ``l2``, ``cosine``, ``dot`` or ``hamming``.
    centroids : [partitions, dimension]
    lengths : int64[partitions]
        Numbers of rows.
    quantizer
        Meaning of the codes.
    has_graphs
        True if partitions have graphs.
    """

    kind: str
    metric: str
    centroids: NDArray[Any]
    lengths: NDArray[np.int64]
    quantizer: Quantizer
    has_graphs: bool

    def read(self, partition: int) -> StoredRows:
        """Read a partition.

        Raises
        ------
        CorruptFileError
            A value is null, or the file cannot be read.
        """

    def graph(self, partition: int) -> GraphRows | None:
        """Read the graph of a partition; None if it has none.

        Raises
        ------
        CorruptFileError
            There are nulls, its description is wrong, or the file cannot be read.
        """


def open_source(folder: IndexFolder) -> Source:
    """Open the files of a segment, and check what describes them.

    Raises
    ------
    CorruptFileError, MissingFileError, UnsupportedError
        The files contradict themselves, are missing, or are of an unknown kind.
    """
    file = folder.open_input(INDEX_FILE)
    if is_legacy(file):
        return _LegacySource(LegacyVectorIndex.open(file, folder.uri(INDEX_FILE)))
    return _LanceSource(folder)


class _LanceSource:
    def __init__(self, folder: IndexFolder) -> None:
        main = VectorIndexFile(folder.open(INDEX_FILE))
        storage = VectorStorage(folder.open(STORAGE_FILE), main.family)
        main.check_storage(storage)
        if main.ivf.centroids is None:
            raise main.table.corrupt("has no centroids")
        self._main, self._storage = main, storage
        self.kind = f"IVF_{'HNSW_' if main.has_graphs else ''}{main.family}"
        self.metric = main.distance
        self.centroids = main.ivf.centroids
        self.lengths = storage.ivf.partitions.lengths
        self.quantizer = storage.quantizer
        self.has_graphs = main.has_graphs
        self._names = [ROW_ID, *self.quantizer.columns]
        if isinstance(self.quantizer, RabitQuantizer):
            if self.quantizer.dimension % 8:
                raise storage.table.corrupt(
                    f"has RaBitQ codes of {self.quantizer.dimension} values, not a multiple of 8"
                )
            stored = {field.name for field in storage.table.schema.fields}
            self._extra = "__blocked_ex_codes" if "__blocked_ex_codes" in stored else "__ex_codes"
            if self.quantizer.bits > 1:
                self._names.append(self._extra)

    def read(self, partition: int) -> StoredRows:
        storage, quantizer = self._storage, self.quantizer
        start = int(storage.ivf.partitions.offsets[partition])
        batch = storage.table.read(start, start + int(self.lengths[partition]), self._names)
        storage.check_valid(batch)
        codes, ids = column_numbers(batch.column(quantizer.code_column)), column_numbers(batch.column(ROW_ID))
        if self.has_graphs and isinstance(quantizer, ProductQuantizer) and quantizer.whole_partitions:
            return StoredRows(np.ascontiguousarray(untransposed(codes)), ids)  # walks pick single rows
        if not isinstance(quantizer, RabitQuantizer):
            return StoredRows(codes, ids)
        factors = tuple(column_numbers(batch.column(name)) for name in quantizer.columns[1:])
        if not quantizer.whole_partitions:
            codes = pack_blocks(codes)
        extra = None
        if quantizer.bits > 1:
            column = batch.column(self._extra)
            if column.null_count:
                raise storage.table.corrupt(f"has nulls in the column {self._extra}")
            unpack = unpacked_stream if self._extra == "__ex_codes" else unpacked_blocks
            extra = unpack(column_numbers(column), quantizer.bits - 1, quantizer.dimension)
        return StoredRows(codes, ids, extra, factors)

    def graph(self, partition: int) -> GraphRows | None:
        main = self._main
        if not main.has_graphs:
            return None
        start, length = int(main.ivf.partitions.offsets[partition]), int(main.ivf.partitions.lengths[partition])
        batch = main.table.read(start, start + length, ["__vector_id", "__neighbors"])
        return graph_rows(main.notes[partition], batch, f"{main.table.where}: partition {partition}")


class _LegacySource:
    def __init__(self, index: LegacyVectorIndex) -> None:
        stage = index.message.vector_index.stages[1].pq
        number = index.message.vector_index.metric_type
        if index.ivf.centroids is None or not 0 <= number < len(METRICS):
            raise CorruptFileError(f"{index.where}: has no centroids, or the unknown metric {number}")
        if stage.HasField("codebook_tensor"):
            codebook = decode_tensor(stage.codebook_tensor, index.where)
        else:
            codebook = np.array(stage.codebook, np.float32)
        parts, words = stage.num_sub_vectors, 1 << stage.num_bits
        self._index = index
        self.kind, self.has_graphs = "IVF_PQ", False
        self.metric = METRICS[number]
        self.centroids = index.ivf.centroids
        self.lengths = index.ivf.partitions.lengths
        self.quantizer: Quantizer = ProductQuantizer(
            *(stage.dimension, stage.num_bits, parts, False),
            codebook.reshape(parts, words, stage.dimension // parts),
        )

    def read(self, partition: int) -> StoredRows:
        codes, ids = self._index.read(partition)
        return StoredRows(codes, ids)

    def graph(self, partition: int) -> GraphRows | None:
        return None
