"""Public classes of schemas with field ids."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError
from lance_dataset.types.schema import Field, Schema

__all__ = ["LanceField", "LanceSchema"]


class LanceField:
    """One field of a `LanceSchema`.

    Parameters
    ----------
    field
        Internal field that it wraps.
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
        """Return the name of the field, without the names of its parents."""
        return self._field.name

    def id(self) -> int:
        """Return the field id."""
        return self._field.id

    def children(self) -> list[LanceField]:
        """Return the child fields of a struct or list."""
        return [LanceField(child) for child in self._field.children]

    @property
    def metadata(self) -> dict[str, str]:
        """Field metadata as text."""
        return {key: value.decode(errors="replace") for key, value in self._field.metadata.items()}

    def to_arrow(self) -> pa.Field:
        """Return the Arrow field, with registered extension types."""
        return Schema((self._field,)).arrow.field(0)

    def is_unenforced_primary_key(self) -> bool:
        """Return True if the field is part of the unenforced primary key."""
        return self._field.primary_key

    def unenforced_primary_key_position(self) -> int | None:
        """Return the 1-based position in the unenforced primary key, or None if field ids define the order."""
        return self._field.primary_key_position or None

    def is_unenforced_clustering_key(self) -> bool:
        """Return True if the field is part of the unenforced clustering key."""
        return self._field.clustering_key_position > 0

    def unenforced_clustering_key_position(self) -> int | None:
        """Return the 1-based position in the unenforced clustering key, or None if the field is not part of it."""
        return self._field.clustering_key_position or None


class LanceSchema:
    """Schema whose fields have ids. Made by `from_pyarrow`, or an attribute of a dataset.

    Parameters
    ----------
    schema
        Internal schema that it wraps.
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
        # The internal schema caches Arrow objects that need not be pickled.
        return LanceSchema, (Schema(self._schema.fields, self._schema.metadata),)

    @staticmethod
    def from_pyarrow(schema: pa.Schema) -> LanceSchema:
        """Give every field an id, depth first from 0.

        Raises
        ------
        SchemaError, UnsupportedError
            Lance cannot store the schema.
        """
        return LanceSchema(Schema.from_arrow(schema))

    def to_pyarrow(self) -> pa.Schema:
        """Return the Arrow schema, with registered extension types."""
        return self._schema.arrow

    def fields(self) -> list[LanceField]:
        """Return the top-level fields."""
        return [LanceField(field) for field in self._schema.fields]

    def field(self, name: str) -> LanceField | None:
        """Return the field with a name or dotted path, or None if it does not exist."""
        try:
            return LanceField(self._schema.resolve(name)[-1])
        except FieldNotFoundError:
            return None

    def field_case_insensitive(self, name: str) -> LanceField | None:
        """Return the field with a name or dotted path, preferably in the exact spelling, or None."""
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
        """Return the fields of the unenforced primary key, in order."""
        keys = [node for node in self._schema.walk() if node.primary_key]
        return [LanceField(node) for node in sorted(keys, key=lambda node: (node.primary_key_position, node.id))]

    def unenforced_clustering_key(self) -> list[LanceField]:
        """Return the fields of the unenforced clustering key, in order."""
        keys = [node for node in self._schema.walk() if node.clustering_key_position]
        return [LanceField(node) for node in sorted(keys, key=lambda node: node.clustering_key_position)]
