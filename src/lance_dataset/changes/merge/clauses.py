"""Clauses of a merge, for rows in both tables, in the source only, and in the target only."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError, nearest_name_hint
from lance_dataset.types.schema import Schema

__all__ = ["MergeClauses", "WhenMatched", "WriteMode", "key_columns", "primary_key"]


class WhenMatched(enum.Enum):
    """Action on target rows that match a source row."""

    NOTHING = "DoNothing"
    UPDATE = "UpdateAll"
    DELETE = "Delete"
    FAIL = "Fail"


class WriteMode(enum.Enum):
    """Storage of changed rows: moved to new fragments, or kept in place with new files for some columns."""

    AUTO = "auto"
    ROWS = "rewrite_rows"
    COLUMNS = "rewrite_columns"


@dataclass(frozen=True)
class MergeClauses:
    """Clauses of a merge.

    Attributes
    ----------
    on
        Key columns, as the table spells them.
    matched
        Action on target rows that match a source row.
    condition
        SQL over ``source.`` and ``target.`` columns; a matched row is updated only if it is true. None for always.
    inserts
        True if source rows without a target row are inserted.
    deletes_rest
        True if target rows without a source row are deleted.
    rest_condition
        SQL over the columns of the table that selects the target rows to delete; None for all.
    write_mode
        Storage of changed rows.
    use_index
        True to find target rows through an index of a key column, if that is faster.
    """

    on: tuple[str, ...]
    matched: WhenMatched = WhenMatched.NOTHING
    condition: str | None = None
    inserts: bool = False
    deletes_rest: bool = False
    rest_condition: str | None = None
    write_mode: WriteMode = WriteMode.AUTO
    use_index: bool = True

    @property
    def writes_source(self) -> bool:
        """True if values of the source are written to the table."""
        return self.inserts or self.matched is WhenMatched.UPDATE

    @property
    def updates_only(self) -> bool:
        """True if the merge neither inserts nor deletes rows."""
        return self.matched is WhenMatched.UPDATE and not self.inserts and not self.deletes_rest

    @property
    def summary(self) -> str:
        """Clauses on one line."""
        matched = self.matched.value if self.condition is None else f"UpdateIf({self.condition})"
        rest = "Keep"
        if self.deletes_rest:
            rest = "Delete" if self.rest_condition is None else f"DeleteIf({self.rest_condition})"
        return (
            f"on=[{', '.join(self.on)}], when_matched={matched}, "
            f"when_not_matched={'InsertAll' if self.inserts else 'DoNothing'}, when_not_matched_by_source={rest}"
        )

    def check(self) -> None:
        """Raise InvalidInputError if there is nothing to do."""
        if self.matched is WhenMatched.NOTHING and not self.inserts and not self.deletes_rest:
            raise InvalidInputError(
                "The merge insert job is not configured to change the data in any way; call when_matched_update_all, "
                "when_not_matched_insert_all or another of its clauses first"
            )


def key_columns(schema: Schema, on: list[str]) -> tuple[str, ...]:
    """Return the key columns as the table spells them; by default those of the primary key.

    Raises
    ------
    InvalidInputError
        `on` is empty, and the table does not have a primary key.
    FieldNotFoundError
        A column does not exist.
    UnsupportedError
        A key is a field inside a struct.
    """
    if not on:
        names = primary_key(schema)
        if not names:
            raise InvalidInputError(
                "A merge insert operation requires join keys: specify `on` columns explicitly or configure a primary "
                "key in the dataset schema"
            )
        on = list(names)
    return tuple(dict.fromkeys(_key_column(schema, name) for name in on))


def _key_column(schema: Schema, name: str) -> str:
    found = named_alike(schema.names, name)
    if found is not None:
        return found
    if name.split(".")[0] in schema.names:
        raise UnsupportedError(
            f"merge insert key {name!r} is inside of a struct; only top-level columns can be keys: add it as a column "
            "first"
        )
    hint = nearest_name_hint(name, schema.names)
    raise FieldNotFoundError(f"Merge insert key column {name!r} does not exist in schema{hint}")


def named_alike(names: list[str], wanted: str) -> str | None:
    """Return the wanted name if it exists, or else the only one that differs from it only by case, or None."""
    if wanted in names:
        return wanted
    alike = [name for name in names if name.lower() == wanted.lower()]
    return alike[0] if len(alike) == 1 else None


def primary_key(schema: Schema) -> tuple[str, ...]:
    """Return the top-level columns of the unenforced primary key in order; empty if the table does not have one."""
    keys = [node for node in schema.fields if node.primary_key]
    return tuple(node.name for node in sorted(keys, key=lambda node: (node.primary_key_position, node.id)))
