"""Goals of storage: what the writer prefers where the metadata of a field does not ask for a compression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias, get_args

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.options import SMALLEST, is_blob, is_blob_v2, is_packed
from lance_dataset.types.schema import Field

__all__ = ["GOAL_CONFIG", "StorageGoal", "check_goal_version", "checked_goal", "configured_goal", "with_goal"]

#: ``speed`` stores plain values, which are mapped instead of decoded; ``balanced`` the smallest of the light encodings;
#: ``size`` compresses pages with Zstandard where that makes them smaller.
StorageGoal: TypeAlias = Literal["speed", "balanced", "size"]

#: Key in the config of a table.
GOAL_CONFIG: Final = "lance_dataset.optimize"
_COMPRESSION = "lance-encoding:compression"
_ASKED: Mapping[StorageGoal, Mapping[str, bytes]] = {
    "speed": {_COMPRESSION: b"none"},
    "size": {_COMPRESSION: b"zstd", SMALLEST: b""},
}
_TOO_OLD = ("0.1", "2.0")


def checked_goal(value: object, what: str = "optimize") -> StorageGoal | None:
    """Return a goal, or None for None.

    Raises
    ------
    TypeError, InvalidInputError
        `value` is not a string, or not the name of a goal.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {type(value).__name__}")
    for goal in get_args(StorageGoal):
        if value == goal:
            return goal  # type: ignore[no-any-return]
    raise InvalidInputError(f"{what} is {value!r}; use one of {', '.join(map(repr, get_args(StorageGoal)))}")


def configured_goal(config: Mapping[str, str], asked: StorageGoal | None = None) -> StorageGoal | None:
    """Return the goal asked for, or else that of the config of a table; None without any.

    Raises
    ------
    InvalidInputError
        The config has an unknown goal.
    """
    return asked or checked_goal(config.get(GOAL_CONFIG), f"the dataset's config {GOAL_CONFIG}")


def check_goal_version(goal: StorageGoal | None, version: str) -> None:
    """Raise UnsupportedError if a file version has no encodings for a goal."""
    if goal in _ASKED and version in _TOO_OLD:
        raise UnsupportedError(
            f"optimize={goal!r} needs file version 2.1 or later, but the files have version {version}; leave it out, "
            "or write another version with data_storage_version"
        )


def with_goal(field: Field, goal: StorageGoal | None) -> Field:
    """Return a field that asks the writer for the compression of a goal, unless it asks for one itself.

    Only the encoder sees it: the schema of the file and of the table stays as it is.
    """
    asked = None if goal is None else _ASKED.get(goal)
    if asked is None or is_packed(field) or is_blob(field) or is_blob_v2(field):
        return field
    if field.children:
        return replace(field, children=tuple(with_goal(child, goal) for child in field.children))
    if _COMPRESSION in field.metadata:
        return field
    return replace(field, metadata={**field.metadata, **asked})
