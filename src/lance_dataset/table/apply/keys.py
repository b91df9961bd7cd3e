"""Unenforced primary and clustering keys, declared in field metadata. Once set, they never change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lance_dataset.errors import InvalidInputError
from lance_dataset.types.schema import (
    CLUSTERING_KEY_POSITION,
    KEY_TRUTHS,
    PRIMARY_KEY,
    PRIMARY_KEY_POSITION,
    Field,
    Schema,
)

__all__ = ["check_keys", "with_metadata"]

_PRIMARY = (PRIMARY_KEY, PRIMARY_KEY_POSITION)
_CLUSTERING = (CLUSTERING_KEY_POSITION,)


def with_metadata(node: Field, metadata: Mapping[str, bytes], schema: Schema) -> Field:
    """Return a field with other metadata, and with the keys that the metadata declares.

    Parameters
    ----------
    node
        The field.
    metadata
        Its complete new metadata.
    schema
        The schema that contains it, before any change.

    Raises
    ------
    InvalidInputError
        The metadata changes a key that is already set, or sets one to an invalid value.
    """
    changed = replace(node, metadata=metadata)
    if _differ(node.metadata, metadata, _PRIMARY):
        if any(field.primary_key for field in schema.walk()):
            raise _once_set("primary", node)
        position = _position(metadata, PRIMARY_KEY_POSITION, "primary", node)
        flag = metadata.get(PRIMARY_KEY)
        if flag is not None and flag.lower() not in KEY_TRUTHS:
            raise _invalid("primary", PRIMARY_KEY, flag, node)
        is_key = flag is not None or position is not None
        changed = replace(changed, primary_key=is_key, primary_key_position=position or 0)
    if _differ(node.metadata, metadata, _CLUSTERING):
        if any(field.clustering_key_position for field in schema.walk()):
            raise _once_set("clustering", node)
        position = _position(metadata, CLUSTERING_KEY_POSITION, "clustering", node)
        changed = replace(changed, clustering_key_position=position or 0)
    return changed


def _differ(before: Mapping[str, bytes], after: Mapping[str, bytes], keys: tuple[str, ...]) -> bool:
    return any(before.get(key) != after.get(key) for key in keys)


def _position(metadata: Mapping[str, bytes], key: str, kind: str, node: Field) -> int | None:
    text = metadata.get(key)
    if text is None:
        return None
    if not text.isdigit() or int(text) >= 1 << 32:
        raise _invalid(kind, key, text, node)
    return int(text)


def _invalid(kind: str, key: str, value: bytes, node: Field) -> InvalidInputError:
    return InvalidInputError(
        f"field {node.name!r}: the unenforced {kind} key is a reserved key and cannot be set to an invalid value: "
        f"{key!r} is {value!r}"
    )


def _once_set(kind: str, node: Field) -> InvalidInputError:
    return InvalidInputError(
        f"field {node.name!r}: the unenforced {kind} key is a reserved key and cannot be changed once set"
    )


def check_keys(schema: Schema) -> None:
    """Raise an error if the primary key is nullable.

    Raises
    ------
    InvalidInputError
        A primary key column or one of its ancestors is nullable. The message names the field.
    """

    def visit(node: Field, nullable: bool) -> None:
        nullable = nullable or node.nullable
        if node.primary_key and nullable:
            raise InvalidInputError(
                f"Primary key column and all its ancestors must not be nullable: field {node.name!r} (id {node.id})"
            )
        for child in node.children:
            visit(child, nullable)

    for top in schema.fields:
        visit(top, False)
