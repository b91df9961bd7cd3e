"""Names and details of indices, as users see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from google.protobuf.message import Message

from lance_dataset._proto import scalar_index_pb2, vector_index_pb2
from lance_dataset.errors import LanceError
from lance_dataset.index.kinds import KINDS, UNKNOWN
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.segments import Segment
from lance_dataset.index.text.statistics import DEFAULT_ANALYSIS
from lance_dataset.index.vector.statistics import is_legacy_index, vector_details
from lance_dataset.table.indices.coverage import kind_of_details
from lance_dataset.table.messages import parse_message

__all__ = ["details_of", "shown_type", "type_url_of"]

_Message = TypeVar("_Message", bound=Message)
#: Details of vector indices of releases that recorded none.
_VECTOR_DETAILS = "/lance.index.pb.VectorIndexDetails"
_METRICS = vector_index_pb2.VectorMetricType


def shown_type(segment: Segment) -> str:
    """Return the type of an index: ``BTree``, ``IVF_PQ`` and the like; ``Unknown`` if it is not recorded.

    The type of a vector index comes from its details, or from its files if it has none.
    """
    kind = segment.kind or _kind_of_old_file(segment)
    if kind is None:
        return UNKNOWN
    if kind != "vector":
        return KINDS[kind].shown
    try:
        details = _vector_message(segment)
    except LanceError:  # an index whose files are damaged is listed too
        return KINDS["vector"].shown
    family = details.WhichOneof("compression")
    return f"IVF_{'HNSW_' if details.HasField('hnsw') else ''}{'FLAT' if family is None else family.upper()}"


def type_url_of(segment: Segment) -> str:
    """Return the URL of the message of the details of an index, empty if its kind is not recorded."""
    details = segment.metadata.details
    if _kind_of_old_file(segment) == "vector" or (
        segment.kind == "vector" and details is not None and not details.value
    ):
        return _VECTOR_DETAILS
    return "" if details is None else details.type_url


def details_of(segment: Segment) -> dict[str, Any]:
    """Return the details that the manifest has of an index, empty for most kinds.

    Those of vector indices without details come from their files, and are empty if these cannot be read.

    Raises
    ------
    CorruptFileError
        The details are not a message of the kind.
    """
    if segment.kind == "vector" or _kind_of_old_file(segment) == "vector":
        try:
            return _vector_details(_vector_message(segment))
        except LanceError:
            if segment.metadata.details is not None and segment.metadata.details.value:
                raise
            return {}
    if segment.kind == "inverted":
        details = _parsed(segment, scalar_index_pb2.InvertedIndexDetails)
        lists = details.document_granularity == scalar_index_pb2.InvertedIndexDetails.LIST_ELEMENT
        analysis = _analysis(details) if details.ByteSize() else {"lance_tokenizer": None, **DEFAULT_ANALYSIS}
        return {**analysis, "document_granularity": "list_element" if lists else "row"}
    if segment.kind == "minhashlsh":
        return _hash_details(_parsed(segment, scalar_index_pb2.MinHashLshIndexDetails))
    if segment.kind == "json":
        json = _parsed(segment, scalar_index_pb2.JsonIndexDetails)
        inner: dict[str, Any] = {}
        if kind_of_details(json.target_details.type_url) == "minhashlsh":
            value = json.target_details.value
            where = f"details of the index {segment.name!r}"
            inner = _hash_details(parse_message(scalar_index_pb2.MinHashLshIndexDetails, value, where))
        return {"path": json.path, "target_details": inner}
    return {}


def _hash_details(details: scalar_index_pb2.MinHashLshIndexDetails) -> dict[str, Any]:
    numbers = {name: getattr(details, name) for name in ("num_hashes", "num_bands", "shingle_size")}
    return {**numbers, "tokenizer": _analysis(details.tokenizer), "signature_version": details.signature_version}


def _kind_of_old_file(segment: Segment) -> str | None:
    """Return ``vector`` for an index without details whose file is one of vectors; these tell their type themselves."""
    if segment.metadata.details is not None or not segment.is_of_vectors:
        return None
    try:
        return "vector" if is_legacy_index(segment.folder) else None
    except (LanceError, OSError):
        return None


def _vector_message(segment: Segment) -> vector_index_pb2.VectorIndexDetails:
    details = segment.metadata.details
    if details is not None and details.value:
        return _parsed(segment, vector_index_pb2.VectorIndexDetails)
    return vector_details(segment.folder)


def _parsed(segment: Segment, kind: type[_Message]) -> _Message:
    details = segment.metadata.details
    return parse_message(kind, b"" if details is None else details.value, f"details of the index {segment.name!r}")


def _analysis(details: scalar_index_pb2.InvertedIndexDetails) -> dict[str, Any]:
    """Return the parameters of the analysis of texts."""

    def given(name: str) -> Any:
        return getattr(details, name) if details.HasField(name) else None

    code = details.code
    return {
        "lance_tokenizer": None,
        "base_tokenizer": given("base_tokenizer"),
        "language": _unquoted(details.language),
        "with_position": details.with_position,
        "max_token_length": given("max_token_length"),
        "lower_case": details.lower_case,
        "stem": details.stem,
        "remove_stop_words": details.remove_stop_words,
        "custom_stop_words": None,
        "ascii_folding": details.ascii_folding,
        "min_ngram_length": details.min_ngram_length,
        "max_ngram_length": details.max_ngram_length,
        "prefix_only": details.prefix_only,
        "block_size": given("block_size") or 128,
        "split_identifiers": code.split_identifiers,
        "split_on_numerics": code.split_on_numerics,
        "preserve_original": code.preserve_original,
        "index_operators": code.index_operators,
    }


def _unquoted(text: str) -> str:
    """Return the language, which is stored as JSON text."""
    try:
        found = parse_json(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, str) else text


def _vector_details(details: vector_index_pb2.VectorIndexDetails) -> dict[str, Any]:
    found: dict[str, Any] = {"metric_type": _name(details.metric_type)}
    if details.target_partition_size:
        found["target_partition_size"] = details.target_partition_size
    if details.HasField("hnsw"):
        names = ("max_connections", "construction_ef", "max_level")
        found["hnsw"] = {name: getattr(details.hnsw, name) for name in names}
    family = details.WhichOneof("compression")
    if family in ("pq", "sq", "rq"):
        found["compression"] = {"type": family, **_compression(family, details)}
    if details.runtime_hints:
        found["runtime_hints"] = dict(details.runtime_hints)
    return found


def _compression(family: str, details: vector_index_pb2.VectorIndexDetails) -> Mapping[str, Any]:
    if family == "pq":
        return {"num_bits": details.pq.num_bits, "num_sub_vectors": details.pq.num_sub_vectors}
    if family == "sq":
        return {"num_bits": details.sq.num_bits}
    matrix = details.rq.rotation_type == vector_index_pb2.VectorIndexDetails.RabitQuantization.MATRIX
    return {"num_bits": details.rq.num_bits, "rotation_type": "matrix" if matrix else "fast"}


def _name(metric: int) -> str:
    return _METRICS.Name(metric) if metric in _METRICS.values() else str(metric)
