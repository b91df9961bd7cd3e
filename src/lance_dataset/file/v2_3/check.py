"""Rules for the schemas of 2.3 files: those of 2.2, but without blobs of version 1 and values of width 0."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.options import is_blob
from lance_dataset.file.structural.check import check_schema as check_levels
from lance_dataset.file.structural.nesting import Branch, branches
from lance_dataset.types.schema import Field, Schema

__all__ = ["check_schema"]

_STRUCTURE = "lance-encoding:structural-encoding"


def check_schema(schema: Schema, version: str) -> None:
    """Raise an error if files of the version cannot hold a schema; see `structural.check.check_schema`."""
    for top in schema.fields:
        for branch in branches(top):
            _check_leaf(branch, version)
    check_levels(Schema(tuple(_without_sparse(field) for field in schema.fields), schema.metadata), version)


def _check_leaf(branch: Branch, version: str) -> None:
    leaf, kind = branch.leaf, branch.leaf.storage_type
    if is_blob(leaf):
        what, instead = "blobs of version 1", "use file version 2.2, or remove the lance-encoding:blob metadata"
    elif pa.types.is_fixed_size_binary(kind) and kind.byte_width == 0:
        # the reference refuses to open even files with them that it wrote itself
        what, instead = "binary values of width 0", "use file version 2.2"
    else:
        return
    names = ".".join([*(nest.field.name for nest in branch.above), leaf.name])
    raise UnsupportedError(f"column {names!r}: file version {version} has no {what}; {instead}")


def _without_sparse(field: Field) -> Field:
    """Return the field without the option for sparse pages, which 2.2 does not have."""
    children = tuple(_without_sparse(child) for child in field.children)
    metadata = field.metadata
    if metadata.get(_STRUCTURE, b"").lower() == b"sparse":
        metadata = {key: value for key, value in metadata.items() if key != _STRUCTURE}
    return replace(field, children=children, metadata=metadata)
