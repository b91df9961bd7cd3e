"""Commands that mend indices."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lance_dataset.errors import LanceError
from lance_dataset.index.describing import details_of
from lance_dataset.index.scalar.minhash_parameters import MinHashParameters
from lance_dataset.index.segments import Segment
from lance_dataset.index.training import TRAINERS

__all__ = ["remedy"]


def remedy(segment: Segment, kind: str | None) -> str:
    """Return Python code that builds the index of a segment of a dataset ``ds`` again.

    Parameters
    ----------
    segment
        One of its segments.
    kind
        Kind of the index, a key of `KINDS`; None if it is not known.
    """
    trainer = TRAINERS.get(kind or "")
    if trainer is None or kind is None or len(segment.column_names) != 1:
        return f"ds.drop_index({segment.name!r})"
    (column,) = segment.column_names
    wanted, parameters = repr(trainer.name), _parameters(segment, kind)
    if kind in ("fm", "json") or parameters:
        wanted = f"IndexConfig({kind!r}, {parameters!r})"
    name = "" if segment.name == f"{column}_idx" else f"name={segment.name!r}, "
    return f"ds.create_scalar_index({column!r}, {wanted}, {name}replace=True)"


def _parameters(segment: Segment, kind: str) -> dict[str, Any]:
    """Return the parameters of an index that differ from the usual ones, as far as its files can be read."""
    details = segment.metadata.details
    value = b"" if details is None else details.value
    try:
        if kind == "minhashlsh":
            return _minhash_parameters(segment, value)
        trainer = TRAINERS[kind]
        if kind != "json" or trainer.restore is None:
            return _unusual(trainer.parameters_of(segment.folder), trainer.defaults)
        found = dict(trainer.restore(value, segment.folder))
        target = found["target_index_type"]
        inner = _unusual(found.pop("target_index_parameters"), TRAINERS[target].defaults)
        return found | ({"target_index_parameters": json.dumps(inner)} if inner and target != "minhashlsh" else {})
    except (LanceError, OSError):
        return {}


def _minhash_parameters(segment: Segment, details: bytes) -> dict[str, Any]:
    made, usual = MinHashParameters.of_details(details, segment.folder.uri("")), MinHashParameters.of({})
    names = ("num_hashes", "num_bands", "shingle_size")
    found = {name: getattr(made, name) for name in names if getattr(made, name) != getattr(usual, name)}
    if made.tokenizer == usual.tokenizer:
        return found
    known = details_of(segment)["tokenizer"]
    return found | {"tokenizer": {name: value for name, value in known.items() if value is not None}}


def _unusual(parameters: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value != defaults.get(name)}
