"""Worker in a separate process that adds a column to one fragment, with no imports beyond what it needs."""

from __future__ import annotations

import json

import pyarrow as pa

import lance_dataset
from lance_dataset.records.schema import LanceSchema

__all__ = ["add_to_fragment"]


def add_to_fragment(place: tuple[str, int, str]) -> tuple[str, LanceSchema]:
    """Add a column to a fragment and return its metadata (as JSON) and schema.

    Parameters
    ----------
    place
        Path of the table, fragment, and kind of column: ``expression``, ``function`` or ``join``.
    """
    path, fragment_id, kind = place
    fragment = lance_dataset.dataset(path).get_fragment(fragment_id)
    assert fragment is not None
    if kind == "join":
        metadata, schema = fragment.merge(pa.table({"i": [1, 2, 5], "r": ["a", "b", "c"]}), "i")
    elif kind == "function":
        metadata, schema = fragment.merge_columns(lambda batch: pa.record_batch({"u": batch["i"]}))
    else:
        metadata, schema = fragment.merge_columns({"r": "concat('r', s)"})
    return json.dumps(metadata.to_json()), schema
