"""Vector indices of a single file, of old releases: product quantization, with codes and row ids by partition."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_dataset._proto import vector_index_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.index.files import IndexFolder, NewIndexFolder
from lance_dataset.index.vector.index_file import INDEX_FILE
from lance_dataset.index.vector.ivf import IvfModel, Partitions
from lance_dataset.index.vector.tensors import decode_tensor
from lance_dataset.io.base import InputFile
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.messages import parse_message

__all__ = ["LegacyVectorIndex", "is_legacy", "remap_legacy"]

_FOOTER = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")
_MAGIC = b"LANC"
_ROW_ID_BYTES = 8


def is_legacy(file: InputFile) -> bool:
    """Return True if the main file of an index has this format and is not a Lance file."""
    if file.size < _FOOTER.size:
        return False
    _, major, minor, magic = _FOOTER.unpack(file.read(file.size - _FOOTER.size, _FOOTER.size))
    return magic == _MAGIC and (major, minor) == (0, 1)


@dataclass(frozen=True)
class LegacyVectorIndex:
    """The index file, with its parameters checked.

    Attributes
    ----------
    file
        The file.
    where
        Its URI.
    message
        Description of the index in the file.
    ivf
        Centroids, and the partitions; their offsets are bytes of the file.
    code_bytes
        Bytes of a code.
    """

    file: InputFile
    where: str
    message: vector_index_pb2.Index
    ivf: IvfModel
    code_bytes: int

    @classmethod
    def open(cls, file: InputFile, where: str) -> LegacyVectorIndex:
        """Read and check the description.

        Raises
        ------
        CorruptFileError
            The description contradicts itself or the size of the file.
        UnsupportedError
            The file is another kind of index.
        """
        message = _read_message(file, where)
        stages = list(message.vector_index.stages)
        if [stage.WhichOneof("stage") for stage in stages] != ["ivf", "pq"]:
            raise UnsupportedError(f"{where}: vector indices with stages other than ivf and pq are not supported")
        ivf = IvfModel.from_message(stages[0].ivf, where)
        code_bytes = _check_codebook(stages[1].pq, ivf, where)
        index = cls(file, where, message, ivf, code_bytes)
        blocks = Partitions(ivf.partitions.offsets, ivf.partitions.lengths * index.row_bytes)
        blocks.check_inside(file.size, where)
        return index

    @property
    def row_bytes(self) -> int:
        """Size in bytes of a row, in the block of its partition."""
        return self.code_bytes + _ROW_ID_BYTES

    def read(self, partition: int) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.uint8]], np.ndarray]:
        """Read the codes ``uint8[rows, code_bytes]`` and row ids ``uint64[rows]`` of a partition."""
        start, rows = int(self.ivf.partitions.offsets[partition]), int(self.ivf.partitions.lengths[partition])
        data = self.file.read(start, rows * self.row_bytes)
        codes = np.frombuffer(data, np.uint8, rows * self.code_bytes).reshape(rows, self.code_bytes)
        return codes, np.frombuffer(data, "<u8", rows, rows * self.code_bytes)


def remap_legacy(source: IndexFolder, target: NewIndexFolder, moved: Relocation) -> None:
    """Write the file with the new addresses of its rows, without rows that are gone."""
    index = LegacyVectorIndex.open(source.open_input(INDEX_FILE), source.uri(INDEX_FILE))
    target.stream(INDEX_FILE, _moved_parts(index, moved))


def _moved_parts(index: LegacyVectorIndex, moved: Relocation) -> Iterator[bytes | memoryview | pa.Buffer]:
    lengths = index.ivf.partitions.lengths.copy()
    for partition in range(len(lengths)):
        codes, row_ids = index.read(partition)
        addresses, gone = moved.locate(row_ids)
        lengths[partition] -= np.count_nonzero(gone)
        yield codes[~gone].tobytes()
        yield addresses[~gone].astype("<u8").tobytes()
    blocks = Partitions.one_after_another(lengths * index.row_bytes)
    message = vector_index_pb2.Index()
    message.CopyFrom(index.message)
    ivf = index.ivf.encode(Partitions(blocks.offsets, lengths))
    message.vector_index.stages[0].ivf.ParseFromString(ivf)
    data = message.SerializeToString()
    yield _LENGTH.pack(len(data)) + data + _FOOTER.pack(int(lengths.sum()) * index.row_bytes, 0, 1, _MAGIC)


def _read_message(file: InputFile, where: str) -> vector_index_pb2.Index:
    if file.size < _FOOTER.size + _LENGTH.size:
        raise CorruptFileError(f"{where}: has only {file.size} bytes")
    end = file.size - _FOOTER.size
    position = _FOOTER.unpack(file.read(end, _FOOTER.size))[0]
    if position > end - _LENGTH.size:
        raise CorruptFileError(f"{where}: its description begins at byte {position}, after its end")
    length = _LENGTH.unpack(file.read(position, _LENGTH.size))[0]
    start = position + _LENGTH.size
    if length > end - start:
        raise CorruptFileError(f"{where}: its description has {length} bytes, but {end - start} remain")
    return parse_message(vector_index_pb2.Index, bytes(file.read(start, length)), where)


def _check_codebook(stage: vector_index_pb2.PQ, ivf: IvfModel, where: str) -> int:
    """Check the quantizer and return the number of bytes of a code."""
    bits, parts, dimension = stage.num_bits, stage.num_sub_vectors, stage.dimension
    if bits not in (4, 8) or not parts or dimension % parts or parts * bits % 8:
        raise CorruptFileError(f"{where}: {dimension} values cannot be cut into {parts} parts of {bits} bits")
    if ivf.centroids is None or ivf.centroids.shape[1] != dimension:
        raise CorruptFileError(f"{where}: has no centroids of {dimension} values")
    inline = len(stage.codebook)
    count = decode_tensor(stage.codebook_tensor, where).size if stage.HasField("codebook_tensor") else inline
    if count != dimension << bits:
        raise CorruptFileError(f"{where}: its codebook has {count} values, not {dimension << bits}")
    return parts * bits // 8
