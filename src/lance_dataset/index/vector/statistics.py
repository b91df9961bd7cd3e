"""Statistics of the files of vector indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_dataset._proto import vector_index_pb2
from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.vector.index_file import INDEX_FILE, VectorIndexFile
from lance_dataset.index.vector.ivf import IVF_KEY, IvfModel
from lance_dataset.index.vector.legacy import LegacyVectorIndex, is_legacy
from lance_dataset.index.vector.quantizers import ProductQuantizer, RabitQuantizer, ScalarQuantizer
from lance_dataset.index.vector.storage import METRICS, STORAGE_FILE, STORAGE_KEY, VectorStorage, buffer, entry

__all__ = ["is_legacy_index", "vector_details", "vector_statistics"]

_Details = vector_index_pb2.VectorIndexDetails
_LEGACY_TYPE = "IVF_PQ"
#: Entries of the description of the storage that hold, or name, the codebook.
_CODEBOOK = ("codebook_position", "codebook_tensor", "codebook")


def is_legacy_index(folder: IndexFolder) -> bool:
    """Return True if an index is the single file of old releases."""
    return INDEX_FILE in folder.names() and is_legacy(folder.open_input(INDEX_FILE))


def vector_details(folder: IndexFolder) -> vector_index_pb2.VectorIndexDetails:
    """Derive the details of an index from its files; old releases did not record them.

    Raises
    ------
    CorruptFileError, MissingFileError, UnsupportedError
        A file cannot be read, or is of an unknown type.
    """
    if is_legacy(folder.open_input(INDEX_FILE)):
        legacy = LegacyVectorIndex.open(folder.open_input(INDEX_FILE), folder.uri(INDEX_FILE)).message.vector_index
        quantizer = legacy.stages[1].pq
        pq = _Details.ProductQuantization(num_bits=quantizer.num_bits, num_sub_vectors=quantizer.num_sub_vectors)
        details = _Details(pq=pq)
        details.metric_type = legacy.metric_type
        return details
    index = VectorIndexFile(folder.open(INDEX_FILE))
    details = _Details(metric_type=index.distance.upper())
    storage = VectorStorage(folder.open(STORAGE_FILE), index.family)
    quantizer_ = storage.quantizer
    if isinstance(quantizer_, ProductQuantizer):
        details.pq.num_bits, details.pq.num_sub_vectors = quantizer_.bits, quantizer_.sub_vectors
    elif isinstance(quantizer_, ScalarQuantizer):
        details.sq.num_bits = 8
    elif isinstance(quantizer_, RabitQuantizer):
        details.rq.num_bits = _integer(_storage(storage.table), "num_bits")
    else:
        details.flat.SetInParent()
    if index.has_graphs:
        shape = next((note for note in index.notes if note), "")
        parameters = _object(index.table, shape).get("params")
        given = parameters if isinstance(parameters, dict) else {}
        details.hnsw.max_connections = _integer(given, "m")
        details.hnsw.construction_ef = _integer(given, "ef_construction")
        details.hnsw.max_level = _integer(given, "max_level")
    return details


def _integer(entries: Mapping[str, Any], key: str) -> int:
    """Return a small number of a description, 0 if it has none."""
    value = entries.get(key)
    return value if isinstance(value, int) and 0 <= value < 1 << 32 else 0


def _type(index: VectorIndexFile) -> str:
    return f"IVF_{'HNSW_' if index.has_graphs else ''}{index.family}"


def vector_statistics(folder: IndexFolder, uuid: str) -> dict[str, Any]:
    """Return the parameters of an index, its centroids and the sizes of its partitions.

    Raises
    ------
    CorruptFileError, MissingFileError, UnsupportedError
        A file cannot be read, or is of an unknown type.
    """
    if is_legacy(folder.open_input(INDEX_FILE)):
        return _legacy_statistics(folder, uuid)
    index = VectorIndexFile(folder.open(INDEX_FILE))
    stored = folder.open(STORAGE_FILE)
    sizes = IvfModel.decode(buffer(stored, IVF_KEY), stored.where).partitions.lengths.tolist()
    return {
        "index_type": _type(index),
        "uuid": uuid,
        "uri": folder.uri(INDEX_FILE),
        "metric_type": index.distance,
        "num_partitions": len(sizes),
        "sub_index": _sub_index(index, stored),
        "partitions": [{"size": size} for size in sizes],
        "centroids": _lists(index.ivf),
        "loss": index.ivf.message.loss if index.ivf.message.HasField("loss") else None,
        "index_file_version": "V3",
    }


def _sub_index(index: VectorIndexFile, stored: IndexTable) -> dict[str, Any]:
    """Return the description of what a partition holds."""
    graph = _object(index.table, next(iter(index.notes), "")) if index.has_graphs else {}
    entries = {key: value for key, value in _storage(stored).items() if key not in _CODEBOOK}
    name = "HNSW" if index.has_graphs else index.family
    return {**graph, **entries, "index_type": name, "metric_type": index.distance}


def _storage(stored: IndexTable) -> dict[str, Any]:
    """Return the description of the storage, which is JSON text in a JSON list."""
    text = entry(stored, STORAGE_KEY)
    try:
        outer = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise stored.corrupt(f"{STORAGE_KEY} is not JSON: {error}") from error
    if not isinstance(outer, list) or len(outer) != 1 or not isinstance(outer[0], str):
        raise stored.corrupt(f"{STORAGE_KEY} is not a list of one text")
    return _object(stored, outer[0])


def _object(table: IndexTable, text: str) -> dict[str, Any]:
    try:
        found = parse_json(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise table.corrupt(f"a description in its metadata is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise table.corrupt("a description in its metadata is not a JSON object")
    return found


def _lists(ivf: IvfModel) -> list[list[float]] | None:
    if ivf.centroids is None:
        return None
    found: list[list[float]] = ivf.centroids.tolist()
    return found


def _legacy_statistics(folder: IndexFolder, uuid: str) -> dict[str, Any]:
    index = LegacyVectorIndex.open(folder.open_input(INDEX_FILE), folder.uri(INDEX_FILE))
    description = index.message.vector_index
    quantizer = description.stages[1].pq
    metric = METRICS[description.metric_type]
    return {
        "index_type": _LEGACY_TYPE,
        "uuid": uuid,
        "uri": folder.uri(INDEX_FILE),
        "metric_type": metric,
        "num_partitions": len(index.ivf.partitions),
        "sub_index": {
            "index_type": "PQ",
            "nbits": quantizer.num_bits,
            "num_sub_vectors": quantizer.num_sub_vectors,
            "dimension": quantizer.dimension,
            "metric_type": metric,
        },
        "partitions": [{"size": size} for size in index.ivf.partitions.lengths.tolist()],
        "centroids": _lists(index.ivf),
        "loss": index.ivf.message.loss if index.ivf.message.HasField("loss") else None,
        "index_file_version": "Legacy",
    }
