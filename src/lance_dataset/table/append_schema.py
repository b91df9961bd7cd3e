"""Check that the schema of appended data fits the schema of a table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_dataset.errors import SchemaError
from lance_dataset.file.options import BLOB_THRESHOLDS, is_blob_v2
from lance_dataset.types.schema import Field, Schema

__all__ = ["check_append_schema"]


def check_append_schema(given: pa.Schema, existing: Schema) -> None:
    """Check that data of a schema can be appended to a dataset.

    Columns are matched by name, nested fields too. Nullable ones may be missing. Whether nulls occur where the dataset
    does not allow them shows only in the data.

    Parameters
    ----------
    given
        Schema of the data.
    existing
        Schema of the dataset.

    Raises
    ------
    SchemaError
        Missing, unexpected or differently typed fields, all of them named by their paths.
    """
    problems = _differences(Schema.from_arrow(given).fields, existing.fields, "")
    if problems:
        raise SchemaError("Append with different schema: " + ", ".join(problems))


def _differences(given: Sequence[Field], existing: Sequence[Field], prefix: str) -> list[str]:
    by_name = {field.name: field for field in given}
    known = {field.name for field in existing}
    missing = [prefix + field.name for field in existing if field.name not in by_name and not field.nullable]
    unexpected = [prefix + field.name for field in given if field.name not in known]
    problems = []
    if missing or unexpected:
        problems.append(f"fields did not match, missing=[{', '.join(missing)}], unexpected=[{', '.join(unexpected)}]")
    for field in existing:
        if field.name in by_name:
            problems += _difference(by_name[field.name], field, prefix + field.name)
    return problems


def _blob_differences(given: Field, existing: Field, path: str) -> list[str]:
    """Return the thresholds that differ. Whether blobs can be ranges of objects does not matter."""
    problems = []
    for key, default in BLOB_THRESHOLDS.items():
        kept, asked = (field.metadata.get(key, b"%d" % default) for field in (existing, given))
        if key in given.metadata and asked != kept:
            problems.append(
                f"`{path}` has the blob threshold {key}={asked.decode()}, but the dataset has {kept.decode()}: "
                "thresholds belong to the column, so leave them out"
            )
    return problems


def _difference(given: Field, existing: Field, path: str) -> list[str]:
    problems = []
    if given.logical_type != existing.logical_type:
        problems.append(f"`{path}` should have type {existing.logical_type} but type was {given.logical_type}")
    if is_blob_v2(existing) and is_blob_v2(given):
        return [*problems, *_blob_differences(given, existing, path)]
    below = _differences(given.children, existing.children, f"{path}.")
    if below:
        problems.append(f"`{path}` had mismatched children: {', '.join(below)}")
    return problems
