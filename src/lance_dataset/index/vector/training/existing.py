"""Training of segments like those of an existing vector index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset._proto import vector_index_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.trainer import Trainer
from lance_dataset.index.vector.graph import GraphParameters
from lance_dataset.index.vector.index_file import INDEX_FILE, VectorIndexFile
from lance_dataset.index.vector.quantizers import FlatVectors, ProductQuantizer, Quantizer, RabitQuantizer
from lance_dataset.index.vector.searching.sources import open_source
from lance_dataset.index.vector.statistics import is_legacy_index, vector_details
from lance_dataset.index.vector.storage import METRICS, STORAGE_FILE, VectorStorage
from lance_dataset.index.vector.training.encoding import Encoder, FlatEncoder, ProductEncoder, ScalarEncoder
from lance_dataset.index.vector.training.parameters import REASON, VectorParameters
from lance_dataset.index.vector.training.rabit import RabitEncoder
from lance_dataset.index.vector.training.trainer import BUILT_KINDS, Models, vector_trainer, wanted_rows
from lance_dataset.table.messages import parse_message
from lancecodec.search.graphs import MAX_LEVELS

__all__ = ["rebalanced_size", "trainer_like"]

_MAX_NUMBER = 1 << 20
_MOST_NEIGHBORS = 1 << 12


def trainer_like(details: bytes, folder: IndexFolder, *, retrain: bool = False, rebalance: bool = False) -> Trainer:
    """Return the training of segments with the parameters and the models of an existing one.

    Segments in the single-file format of old releases have models, too; new segments are in the usual format.

    Parameters
    ----------
    details
        Details of the index; empty if it has none.
    folder
        Files of the segment; none if it was never trained.
    retrain
        True to train new models.
    rebalance
        True to split partitions that are much larger than wanted, and to join those that are much smaller.

    Raises
    ------
    CorruptFileError, MissingFileError
        The files cannot be read.
    UnsupportedError
        This release does not build indices of the kind, or not with its rotation.
    """
    where = "details of the vector index"
    trained = bool(folder.names())
    found = parse_message(vector_index_pb2.VectorIndexDetails, details, where) if details else vector_details(folder)
    parameters = _parameters(found, where)
    if not trained or retrain:
        return vector_trainer(parameters)
    wanted = wanted_rows(parameters) if rebalance else None
    if is_legacy_index(folder):
        source = open_source(folder)
        product = _product(source.quantizer, parameters)
        return vector_trainer(parameters, Models(source.centroids, lambda bounds: product, wanted))
    main = VectorIndexFile(folder.open(INDEX_FILE))
    storage = VectorStorage(folder.open(STORAGE_FILE), main.family)
    main.check_storage(storage)
    if main.ivf.centroids is None:
        raise CorruptFileError(f"{main.table.where}: has no centroids")
    centroids = main.ivf.centroids
    return vector_trainer(parameters, Models(centroids, _encoder_of(storage, centroids, parameters), wanted))


def rebalanced_size(details: bytes, folder: IndexFolder) -> int | None:
    """Return the vectors of a partition that optimizations of an index aim at.

    Parameters
    ----------
    details
        Details of the index; empty if it has none.
    folder
        Files of a segment.

    Returns
    -------
    int
        None if a number of partitions was asked for: they stay as they are.

    Raises
    ------
    CorruptFileError, MissingFileError, UnsupportedError
        The files cannot be read, or are of a kind that this release does not build.
    """
    where = "details of the vector index"
    found = parse_message(vector_index_pb2.VectorIndexDetails, details, where) if details else vector_details(folder)
    return None if found.target_num_partitions else wanted_rows(_parameters(found, where))


def _parameters(details: vector_index_pb2.VectorIndexDetails, where: str) -> VectorParameters:
    if not 0 <= details.metric_type < len(METRICS):
        raise CorruptFileError(f"{where}: unknown metric {details.metric_type}")
    family = details.WhichOneof("compression")
    kind = f"IVF_{'HNSW_' if details.HasField('hnsw') else ''}{(family or 'flat').upper()}"
    if kind not in BUILT_KINDS:
        raise UnsupportedError(
            f"this release builds {', '.join(BUILT_KINDS)} indices, not {kind}; name the other indices with "
            "index_names, or optimize it with pylance"
        )
    code = details.pq if family == "pq" else details.rq
    graph = None
    if details.HasField("hnsw"):
        usual, found = GraphParameters(), details.hnsw
        graph = GraphParameters(
            min(max(found.max_connections, 4), _MOST_NEIGHBORS) if found.max_connections else usual.neighbors,
            min(found.construction_ef, _MAX_NUMBER) or usual.candidates,
            min(found.max_level, MAX_LEVELS) or usual.levels,
        )
    return VectorParameters(
        kind,
        METRICS[details.metric_type],
        partitions=min(details.target_num_partitions, _MAX_NUMBER) or None,
        partition_rows=details.target_partition_size or None,
        sub_vectors=details.pq.num_sub_vectors if family == "pq" else None,
        bits=code.num_bits or (5 if family == "rq" else 8),
        sample_rate=_hint(details, "lance.ivf.sample_rate", 256),
        iterations=_hint(details, "lance.ivf.max_iters", 50),
        is_grouped=details.runtime_hints.get("lance.skip_transpose") != "true",
        reason=details.runtime_hints.get(REASON, ""),
        graph=graph,
    )


def _hint(details: vector_index_pb2.VectorIndexDetails, key: str, default: int) -> int:
    text = details.runtime_hints.get(key, "")
    usable = text.isascii() and text.isdecimal() and len(text) < 8
    return min(max(int(text), 1), _MAX_NUMBER) if usable else default


def _encoder_of(
    storage: VectorStorage, centroids: NDArray[Any], parameters: VectorParameters
) -> Callable[[tuple[float, float]], Encoder]:
    """Return what makes the encoding; the bounds of bytes are widened to those of the vectors."""
    quantizer = storage.quantizer
    if isinstance(quantizer, FlatVectors):
        return lambda bounds: FlatEncoder()
    if isinstance(quantizer, ProductQuantizer):
        product = _product(quantizer, parameters)
        return lambda bounds: product
    if isinstance(quantizer, RabitQuantizer):
        if quantizer.signs is None or not quantizer.raw_query:
            raise UnsupportedError(
                f"{storage.table.where}: this release does not encode with the rotation of this index; "
                "optimize with retrain=True"
            )
        rabit = RabitEncoder(centroids, quantizer.bits, parameters.metric, quantizer.signs, parameters.is_grouped)
        return lambda bounds: rabit
    start, end = quantizer.start, quantizer.end
    return lambda bounds: ScalarEncoder(min(start, bounds[0]), max(end, bounds[1]))


def _product(quantizer: Quantizer, parameters: VectorParameters) -> ProductEncoder:
    if not isinstance(quantizer, ProductQuantizer):
        raise UnsupportedError("an index in the single-file format has no codewords; optimize with retrain=True")
    return ProductEncoder(np.asarray(quantizer.codebook), parameters.metric != "dot", parameters.is_grouped)
