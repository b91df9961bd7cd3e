"""Main file of a vector index: its kind, its centroids, and the graphs within partitions."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.files import IndexTable
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.vector.ivf import IVF_KEY, IvfModel
from lance_dataset.index.vector.storage import VectorStorage, buffer, distance_name, entry

__all__ = ["FLAT_KEY", "GRAPH_COLUMNS", "GRAPH_KEY", "INDEX_FILE", "INDEX_KEY", "VectorIndexFile"]

INDEX_FILE = "index.idx"
INDEX_KEY = "lance:index"
#: Keys of the description of each partition: empty, or the shape of its graph.
FLAT_KEY, GRAPH_KEY = "lance:flat", "lance:hnsw"
#: Columns of graphs: number of a node, numbers of its neighbors, and the distances to them.
GRAPH_COLUMNS = {
    "__vector_id": pa.uint32(),
    "__neighbors": pa.list_(pa.uint32()),
    "_distance": pa.list_(pa.float32()),
}
_KIND = re.compile(r"IVF_(HNSW_)?(FLAT|PQ|SQ|RQ)")


class VectorIndexFile:
    """The main file, with its parameters checked.

    Parameters
    ----------
    table
        The file.

    Attributes
    ----------
    table
        The file.
    family : str
        How vectors are stored: ``FLAT``, ``PQ``, ``SQ`` or ``RQ``.
    has_graphs : bool
        True if each partition has a graph.
    distance : str
        ``l2``, ``cosine``, ``dot`` or ``hamming``.
    ivf : IvfModel
        Centroids, and the ranges of rows of this file that are the graphs.
    notes : list of str
        Description of each partition.

    Raises
    ------
    CorruptFileError
        Metadata are missing, or contradict each other.
    The kind of index is not known.
        The kind of index is not known.
    """

    def __init__(self, table: IndexTable) -> None:
        self.table = table
        if table.version == "0.1":
            raise UnsupportedError(
                f"{table.where}: vector indices of releases before 0.11 with graphs are not supported"
            )
        kind = _parse(table, INDEX_KEY)
        name, distance = (kind.get("type"), kind.get("distance_type")) if isinstance(kind, dict) else (None, None)
        found = _KIND.fullmatch(name) if isinstance(name, str) else None
        if found is None:
            raise UnsupportedError(f"{table.where}: vector indices of the type {name!r} are not supported")
        if not isinstance(distance, str):
            raise table.corrupt(f"has no distance in {INDEX_KEY}")
        self.distance = distance_name(distance, table)
        self.family, self.has_graphs = found[2], found[1] is not None
        self.ivf = IvfModel.decode(buffer(table, IVF_KEY), table.where)
        self.notes: list[str] = _parse(table, GRAPH_KEY if self.has_graphs else FLAT_KEY)
        count = len(self.ivf.partitions)
        if not _is_texts(self.notes) or len(self.notes) != count:
            raise table.corrupt(f"its metadata do not hold one text for each of {count} partitions")
        if self.has_graphs:
            self._check_graphs()

    def check_storage(self, storage: VectorStorage) -> None:
        """Raise CorruptFileError unless the file of the stored vectors belongs to this file."""
        if storage.distance != self.distance:
            raise self.table.corrupt(f"has distance {self.distance}, but its stored vectors {storage.distance}")
        partitions = len(storage.ivf.partitions)
        if partitions != len(self.ivf.partitions):
            raise self.table.corrupt(f"has {len(self.ivf.partitions)} partitions, its vectors have {partitions}")
        centroids = self.ivf.centroids
        if centroids is None or centroids.shape[1] != storage.quantizer.dimension:
            shape = None if centroids is None else centroids.shape
            raise self.table.corrupt(
                f"has centroids of the shape {shape}, but vectors of {storage.quantizer.dimension} values"
            )

    def _check_graphs(self) -> None:
        self.ivf.partitions.check_inside(self.table.num_rows, self.table.where)
        columns = {field.name: field.storage_type for field in self.table.schema.fields}
        for name, kind in GRAPH_COLUMNS.items():
            found = columns.get(name)
            same_items = (
                found is not None and pa.types.is_list(found) and found.value_type == getattr(kind, "value_type", None)
            )
            if found != kind and not same_items:
                raise self.table.corrupt(f"the column {name} is of {found}, not {kind}")


def _parse(table: IndexTable, key: str) -> Any:
    try:
        return parse_json(entry(table, key))
    except (ValueError, RecursionError) as error:
        raise table.corrupt(f"{key} in its metadata is not JSON: {error}") from error


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
