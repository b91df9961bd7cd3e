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
from lance_dataset.index.vector.index_file import INDEX_FILE, VectorIndexFile
from lance_dataset.index.vector.quantizers import FlatVectors, ProductQuantizer, RabitQuantizer
from lance_dataset.index.vector.statistics import is_legacy_index, vector_details
from lance_dataset.index.vector.storage import METRICS, STORAGE_FILE, VectorStorage
from lance_dataset.index.vector.training.encoding import Encoder, FlatEncoder, ProductEncoder, ScalarEncoder
from lance_dataset.index.vector.training.rabit import RabitEncoder
from lance_dataset.index.vector.training.trainer import BUILT_KINDS, Models, VectorParameters, vector_trainer
from lance_dataset.table.messages import parse_message

__all__ = ["trainer_like"]

_MAX_NUMBER = 1 << 20


def trainer_like(details: bytes, folder: IndexFolder, *, retrain: bool = False) -> Trainer:
    """Return the training of segments with the parameters and the models of an existing one.

    Parameters
    ----------
    details
        Details of the index; empty if it has none.
    folder
        Files of the segment; none if it was never trained.
    retrain
        True to train new models.

    Raises
    ------
    CorruptFileError, MissingFileError
        The files cannot be read.
    UnsupportedError
        This release does not build indices of the kind, or not with its rotation.
    """
    trained = bool(folder.names())
    if trained and is_legacy_index(folder):
        raise UnsupportedError(
            "a vector index is in the single-file format of old releases, which this release does not write; "
            "build it again with create_index and replace=True"
        )
    where = "details of the vector index"
    found = parse_message(vector_index_pb2.VectorIndexDetails, details, where) if details else None
    parameters = _parameters(vector_details(folder) if found is None else found, where)
    if not trained or retrain:
        return vector_trainer(parameters)
    main = VectorIndexFile(folder.open(INDEX_FILE))
    storage = VectorStorage(folder.open(STORAGE_FILE), main.family)
    main.check_storage(storage)
    if main.ivf.centroids is None:
        raise CorruptFileError(f"{main.table.where}: has no centroids")
    models = Models(main.ivf.centroids, _encoder_of(storage, main.ivf.centroids, parameters))
    return vector_trainer(parameters, models)


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
    return VectorParameters(
        kind,
        METRICS[details.metric_type],
        partition_rows=details.target_partition_size or None,
        sub_vectors=details.pq.num_sub_vectors if family == "pq" else None,
        bits=code.num_bits or (5 if family == "rq" else 8),
        sample_rate=_hint(details, "lance.ivf.sample_rate", 256),
        iterations=_hint(details, "lance.ivf.max_iters", 50),
    )


def _hint(details: vector_index_pb2.VectorIndexDetails, key: str, default: int) -> int:
    text = details.runtime_hints.get(key, "")
    usable = text.isascii() and text.isdecimal() and len(text) < 8
    return min(max(int(text), 1), _MAX_NUMBER) if usable else default


def _encoder_of(
    storage: VectorStorage, centroids: NDArray[Any], parameters: VectorParameters
) -> Callable[[NDArray[Any]], Encoder]:
    """Return what makes the encoding; the bounds of bytes are widened to those of the vectors."""
    quantizer = storage.quantizer
    if isinstance(quantizer, FlatVectors):
        return lambda vectors: FlatEncoder()
    if isinstance(quantizer, ProductQuantizer):
        product = ProductEncoder(np.asarray(quantizer.codebook), parameters.metric != "dot")
        return lambda vectors: product
    if isinstance(quantizer, RabitQuantizer):
        if quantizer.signs is None or not quantizer.raw_query:
            raise UnsupportedError(
                f"{storage.table.where}: this release does not encode with the rotation of this index; "
                "optimize with retrain=True"
            )
        rabit = RabitEncoder(centroids, quantizer.bits, parameters.metric, quantizer.signs)
        return lambda vectors: rabit
    bounds = quantizer.start, quantizer.end

    def scalar(vectors: NDArray[Any]) -> Encoder:
        lowest, highest = (float(vectors.min()), float(vectors.max())) if vectors.size else bounds
        return ScalarEncoder(min(bounds[0], lowest), max(bounds[1], highest))

    return scalar
