"""What a merge does with the rows that it finds in both tables, in its source only, and in its target only."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError, nearest_name_hint
from lance_dataset.schema import Schema

__all__ = ["MergeClauses", "WhenMatched", "WriteMode", "key_columns", "primary_key"]


class WhenMatched(enum.Enum):
    """What becomes of target rows that have a source row."""

    NOTHING = "DoNothing"
    UPDATE = "UpdateAll"
    DELETE = "Delete"
    FAIL = "Fail"


class WriteMode(enum.Enum):
    """How changed rows are stored: moved to new fragments, or in place with new files for some columns."""

    AUTO = "auto"
    ROWS = "rewrite_rows"
    COLUMNS = "rewrite_columns"


@dataclass(frozen=True)
class MergeClauses:
    """What a merge does.

    Attributes
    ----------
    on
        Key columns, as the table spells them.
    matched
        What becomes of target rows that have a source row.
    condition
        SQL over ``source.`` and ``target.`` columns: only where it is true is a matched row updated. None for always.
    inserts
        Whether source rows without a target row are inserted.
    deletes_rest
        Whether target rows without a source row are deleted.
    rest_condition
        SQL over the columns of the table that says which of them; None for all.
    write_mode
        How changed rows are stored.
    """

    on: tuple[str, ...]
    matched: WhenMatched = WhenMatched.NOTHING
    condition: str | None = None
    inserts: bool = False
    deletes_rest: bool = False
    rest_condition: str | None = None
    write_mode: WriteMode = WriteMode.AUTO

    @property
    def writes_source(self) -> bool:
        """Whether values of the source get into the table."""
        return self.inserts or self.matched is WhenMatched.UPDATE

    @property
    def updates_only(self) -> bool:
        """Whether no row comes or goes."""
        return self.matched is WhenMatched.UPDATE and not self.inserts and not self.deletes_rest

    @property
    def summary(self) -> str:
        """The clauses on one line."""
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
    """The key columns that a user names, as the table spells them; those of the primary key if there are none.

    Raises
    ------
    InvalidInputError
        No names, and the table has no primary key.
    FieldNotFoundError
        There is no such column.
    UnsupportedError
        A field inside of a struct.
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
            f"merge insert key {name!r} is inside of a struct; only whole columns can be keys: add it as a column first"
        )
    hint = nearest_name_hint(name, schema.names)
    raise FieldNotFoundError(f"Merge insert key column {name!r} does not exist in schema{hint}")


def named_alike(names: list[str], wanted: str) -> str | None:
    """The name itself if it is there, else the only one that differs by case alone."""
    if wanted in names:
        return wanted
    alike = [name for name in names if name.lower() == wanted.lower()]
    return alike[0] if len(alike) == 1 else None


def primary_key(schema: Schema) -> tuple[str, ...]:
    """The top-level columns of the unenforced primary key in their order; empty without one."""
    keys = [node for node in schema.fields if node.primary_key]
    return tuple(node.name for node in sorted(keys, key=lambda node: (node.primary_key_position, node.id)))
