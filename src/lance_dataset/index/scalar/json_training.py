"""Training of indices of the values at a path of JSON documents: an index of another kind, of the values found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage

from lance_dataset._proto import scalar_index_pb2
from lance_dataset.errors import InvalidIndexError, InvalidInputError, UnsupportedError
from lance_dataset.expr.type_rules import is_binary
from lance_dataset.index.files import IndexFolder
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.scalar.json_path import parse_details
from lance_dataset.index.scalar.json_values import JsonPath, typed_entries
from lance_dataset.index.trainer import Trainer, Training
from lance_dataset.table.indices.changes import holds_addresses
from lance_dataset.table.indices.coverage import kind_of_details

__all__ = ["json_trainer"]

_URL: Final = "/lance.index.pb.JsonIndexDetails"
_PATH, _TARGET, _TARGET_PARAMETERS = "path", "target_index_type", "target_index_parameters"
#: Found by experiments with the reference: rows outside of the first fragment are missing from its answers.
_MISTAKEN: Final = (
    "it would hold addresses of rows, which releases of the reference take for row ids if the index is of JSON "
    "documents; use btree, bitmap or ngram as target_index_type"
)


class _Restored(dict[str, Any]):
    """Parameters of the index of the values that come from an existing index."""


def json_trainer(trainer_of: Callable[[str], Trainer]) -> Trainer:
    """Return the training of JSON indices, which must be specialized with parameters before it is used.

    Parameters
    ----------
    trainer_of
        Returns the training of a kind, by the name that `IndexConfig` takes.
    """

    def specialized(parameters: Mapping[str, Any]) -> Trainer:
        target, path = _text(parameters, _TARGET), _text(parameters, _PATH)
        if target.lower() in ("inverted", "fts"):
            raise UnsupportedError(
                f"JSON-path indexes do not support target index type {target!r}; create an INVERTED index directly on "
                "the JSON column instead"
            )
        inner = trainer_of(target)
        if inner.type_url == _URL:
            raise InvalidInputError(f"the values at a path of JSON documents cannot have an index of the kind {target}")
        wanted = _target_parameters(parameters)
        if inner.specialize is not None:
            inner = inner.specialize(wanted)
        given = inner.checked(wanted)
        known = JsonPath(path)
        by_address = holds_addresses(kind_of_details(inner.type_url), 0)
        return replace(
            _trainer(lambda work: _write(work, known, inner, given)),
            uses_addresses=by_address,
            stable_refusal=_MISTAKEN if by_address else None,
        )

    def restored(details: bytes, folder: IndexFolder) -> Mapping[str, Any]:
        message = parse_details(details, folder.uri(""))
        target = kind_of_details(message.target_details.type_url)
        inner = trainer_of(target)
        known = inner.parameters_of(folder)
        if inner.restore is not None and inner.type_url != _URL:
            known = dict(inner.restore(message.target_details.value, folder))
        return {_PATH: message.path, _TARGET: target, _TARGET_PARAMETERS: _Restored(known)}

    def unspecialized(work: Training) -> bytes:
        raise InvalidIndexError(f"a JSON index needs {_TARGET} and {_PATH}")

    return replace(_trainer(unspecialized), specialize=specialized, restore=restored)


def _trainer(write: Callable[[Training], bytes]) -> Trainer:
    return Trainer("JSON", _URL, _fits, "JSON, binary or large_binary", write, misfit=InvalidInputError)


def _fits(kind: pa.DataType) -> bool:
    return is_binary(kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind)


def _text(parameters: Mapping[str, Any], name: str) -> str:
    if name not in parameters:
        raise InvalidIndexError(f"missing field `{name}`: a JSON index needs {_TARGET} and {_PATH}")
    value = parameters[name]
    if not isinstance(value, str):
        raise InvalidIndexError(f"{name} of a JSON index must be text, not {value!r}")
    return value


def _target_parameters(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of the index of the values, which are given as JSON text."""
    value = parameters.get(_TARGET_PARAMETERS)
    if value is None:
        return {}
    if isinstance(value, _Restored):
        return value
    if not isinstance(value, str):
        raise InvalidIndexError(
            f"{_TARGET_PARAMETERS} of a JSON index must be the text of a JSON object, such as "
            f"""'{{"zone_size": 4096}}', not {value!r}"""
        )
    try:
        found = parse_json(value)
    except (ValueError, RecursionError) as error:
        raise InvalidIndexError(f"{_TARGET_PARAMETERS} of a JSON index is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidIndexError(f"{_TARGET_PARAMETERS} of a JSON index is not a JSON object: {value[:100]}")
    return found


def _write(work: Training, path: JsonPath, inner: Trainer, parameters: Mapping[str, Any]) -> bytes:
    kind, entries = typed_entries(work.entries, path)
    if not inner.fits(kind):
        raise InvalidInputError(f"{inner.name} index of JSON path {path.text!r} must be {inner.wanted}, not {kind}")
    details = inner.write(replace(work, entries=entries, kind=kind, parameters=parameters))
    target = AnyMessage(type_url=inner.type_url, value=details)
    return scalar_index_pb2.JsonIndexDetails(path=path.text, target_details=target).SerializeToString()
