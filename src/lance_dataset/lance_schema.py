"""The public face of schemas with field ids."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError
from lance_dataset.schema import Field, Schema

__all__ = ["LanceField", "LanceSchema"]


class LanceField:
    """One field of a `LanceSchema`.

    Parameters
    ----------
    field
        What it wraps.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, field: Field) -> None:
        self._field = field

    def __repr__(self) -> str:
        node = self._field
        return (
            f"LanceField(name={node.name!r}, id={node.id}, logical_type={node.logical_type!r}, "
            f"nullable={node.nullable}, metadata={self.metadata}, children={self.children()})"
        )

    def __eq__(self, other: object) -> bool:
        return self._field == other._field if isinstance(other, LanceField) else NotImplemented

    def name(self) -> str:
        """Name of the field, without those of its parents."""
        return self._field.name

    def id(self) -> int:
        """Field id."""
        return self._field.id

    def children(self) -> list[LanceField]:
        """Fields below a struct or list."""
        return [LanceField(child) for child in self._field.children]

    @property
    def metadata(self) -> dict[str, str]:
        """Field metadata as text."""
        return {key: value.decode(errors="replace") for key, value in self._field.metadata.items()}

    def to_arrow(self) -> pa.Field:
        """The Arrow field, registered extension types resolved."""
        return Schema((self._field,)).arrow.field(0)

    def is_unenforced_primary_key(self) -> bool:
        """Whether the field is part of the unenforced primary key."""
        return self._field.primary_key

    def unenforced_primary_key_position(self) -> int | None:
        """1-based position in the unenforced primary key, None if the field ids decide."""
        return self._field.primary_key_position or None

    def is_unenforced_clustering_key(self) -> bool:
        """Whether the field is part of the unenforced clustering key."""
        return self._field.clustering_key_position > 0

    def unenforced_clustering_key_position(self) -> int | None:
        """1-based position in the unenforced clustering key, None if it is not part of it."""
        return self._field.clustering_key_position or None


class LanceSchema:
    """A schema whose fields have ids. Made by `from_pyarrow`, or found on a dataset.

    Parameters
    ----------
    schema
        What it wraps.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def __repr__(self) -> str:
        metadata = {key: value.decode(errors="replace") for key, value in self._schema.metadata.items()}
        return f"LanceSchema(fields={self.fields()}, metadata={metadata})"

    def __eq__(self, other: object) -> bool:
        return self._schema == other._schema if isinstance(other, LanceSchema) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        # The inner schema caches Arrow objects that need not travel.
        return LanceSchema, (Schema(self._schema.fields, self._schema.metadata),)

    @staticmethod
    def from_pyarrow(schema: pa.Schema) -> LanceSchema:
        """Give every field an id, depth first from 0.

        Raises
        ------
        SchemaError, UnsupportedError
            A schema that Lance cannot hold.
        """
        return LanceSchema(Schema.from_arrow(schema))

    def to_pyarrow(self) -> pa.Schema:
        """The Arrow schema, registered extension types resolved."""
        return self._schema.arrow

    def fields(self) -> list[LanceField]:
        """Top-level fields."""
        return [LanceField(field) for field in self._schema.fields]

    def field(self, name: str) -> LanceField | None:
        """The field of a name or dotted path, None if there is none."""
        try:
            return LanceField(self._schema.resolve(name)[-1])
        except FieldNotFoundError:
            return None

    def field_case_insensitive(self, name: str) -> LanceField | None:
        """The field of a name or dotted path, in the exact spelling if there is one, else in any."""
        exact = self.field(name)
        if exact is not None:
            return exact
        level, found = self._schema.fields, None
        for part in name.lower().split("."):
            found = next((field for field in level if field.name.lower() == part), None)
            if found is None:
                return None
            level = found.children
        return None if found is None else LanceField(found)

    def unenforced_primary_key(self) -> list[LanceField]:
        """Fields of the unenforced primary key, in its order."""
        keys = [node for node in self._schema.walk() if node.primary_key]
        return [LanceField(node) for node in sorted(keys, key=lambda node: (node.primary_key_position, node.id))]

    def unenforced_clustering_key(self) -> list[LanceField]:
        """Fields of the unenforced clustering key, in its order."""
        keys = [node for node in self._schema.walk() if node.clustering_key_position]
        return [LanceField(node) for node in sorted(keys, key=lambda node: node.clustering_key_position)]
