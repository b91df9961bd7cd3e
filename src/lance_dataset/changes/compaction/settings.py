"""Options of a compaction, from keywords, from the config of a table, or from the JSON of plans and tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from lance_dataset.arguments import checked_integer
from lance_dataset.changes.compaction.planning import Limits
from lance_dataset.errors import InvalidInputError
from lance_dataset.file.goals import StorageGoal, checked_goal
from lance_dataset.file.versions import resolve_version
from lance_dataset.io.option_values import strict_bool

__all__ = ["BINARY_COPY_MODES", "CompactionSettings"]

_CONFIG = "lance.compaction."
_REENCODE, _TRY, _FORCE = "reencode", "try_binary_copy", "force_binary_copy"
_MODES = {_REENCODE: "Reencode", _TRY: "TryBinaryCopy", _FORCE: "ForceBinaryCopy"}
_MODE_NAMES = {stored: name for name, stored in _MODES.items()}
#: Modes in which pages are copied without decoding if that is possible.
BINARY_COPY_MODES = frozenset({_TRY, _FORCE})
#: Options that other releases store in plans, with the values that describe this implementation.
_NOTED = {"index_remap_mode": "Direct", "max_overlays_per_fragment": 10}


@dataclass(frozen=True)
class CompactionSettings:
    """Checked options; see `DatasetOptimizer.compact_files` for their meaning.

    Attributes
    ----------
    compaction_mode
        One of ``reencode``, ``try_binary_copy``, ``force_binary_copy``; None for the first.
    data_storage_version
        File version of new fragments; None for that of the table.
    optimize
        What encodings of new fragments are chosen for; None for the goal of the table.
    has_eager_remappable_index
        True if a table with stable row ids has an index that holds addresses nevertheless, and must be rebuilt when
        rows move. None for tables without stable row ids. This is not an option; it is stored in plans.
    """

    target_rows_per_fragment: int = 1024 * 1024
    max_rows_per_group: int = 1024
    max_bytes_per_file: int | None = None
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    num_threads: int | None = None
    batch_size: int | None = None
    io_buffer_size: int | None = None
    defer_index_remap: bool = False
    compaction_mode: str | None = None
    binary_copy_read_batch_bytes: int | None = None
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: tuple[int, ...] = ()
    data_storage_version: str | None = None
    optimize: StorageGoal | None = None
    has_eager_remappable_index: bool | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], config: Mapping[str, str] | None = None) -> CompactionSettings:
        """Make settings from options by name; an option that is None counts as missing.

        Parameters
        ----------
        given
            The options.
        config
            Config of the table, which supplies missing options.

        Raises
        ------
        InvalidInputError, TypeError
            An option is unknown, of the wrong type or out of range.
        """
        unknown = sorted(given.keys() - _CHECKS.keys())
        if unknown:
            raise InvalidInputError(f"Invalid compaction option: {', '.join(unknown)}; known are {', '.join(_CHECKS)}")
        options = {name: value for name, value in given.items() if value is not None}
        options = {**_configured(config or {}), **options}
        return cls(**{name: _CHECKS[name](name, value) for name, value in options.items()})

    @classmethod
    def from_json(cls, value: Any, what: str) -> CompactionSettings:
        """Read settings from the JSON of a plan or a task; unknown options are ignored.

        Raises
        ------
        InvalidInputError
            `value` is not valid settings.
        """
        if not isinstance(value, Mapping):
            raise InvalidInputError(f"Could not load {what} due to error: 'options' is not an object")
        known = {name: value[name] for name in _CHECKS if value.get(name) is not None}
        mode = known.pop("compaction_mode", None)
        if mode is not None and mode not in list(_MODE_NAMES):  # a list, as it may be of any type
            raise InvalidInputError(f"Could not load {what} due to error: unknown compaction_mode {mode!r}")
        if mode is None and value.get("enable_binary_copy"):
            mode = _MODES[_FORCE if value.get("enable_binary_copy_force") else _TRY]
        try:
            settings = cls.of(known)
        except (TypeError, InvalidInputError) as error:
            raise InvalidInputError(f"Could not load {what} due to error: {error}") from error
        follows = value.get("has_eager_remappable_index")
        settings = replace(settings, has_eager_remappable_index=follows if isinstance(follows, bool) else None)
        return settings if mode is None else replace(settings, compaction_mode=_MODE_NAMES[mode])

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value that `from_json` and the reference read."""
        values = asdict(self)
        values |= {
            "compaction_mode": None if self.compaction_mode is None else _MODES[self.compaction_mode],
            "binary_copy_read_batch_bytes": self.copied_at_once,
            "excluded_fragment_ids": list(self.excluded_fragment_ids),
            "enable_binary_copy": False,
            "enable_binary_copy_force": False,
        }
        if self.optimize is None:
            del values["optimize"]  # an option of this package alone
        return {**values, **_NOTED}

    @property
    def copies_pages(self) -> bool:
        """True if pages are copied without decoding whenever that is possible."""
        return self.compaction_mode in BINARY_COPY_MODES

    @property
    def must_copy_pages(self) -> bool:
        """True if re-encoding is not allowed."""
        return self.compaction_mode == _FORCE

    @property
    def copied_at_once(self) -> int:
        """Maximum number of bytes of pages to hold in memory while copying."""
        return self.binary_copy_read_batch_bytes or 16 << 20

    @property
    def limits(self) -> Limits:
        """Limits on the fragments to compact."""
        materialize = self.materialize_deletions and self.materialize_deletions_threshold < 1
        return Limits(
            target_rows=self.target_rows_per_fragment,
            max_deleted=self.materialize_deletions_threshold if materialize else None,
            max_fragments=self.max_source_fragments,
            max_rows=self.max_source_rows,
            max_bytes=self.max_source_bytes,
            excluded=frozenset(self.excluded_fragment_ids),
        )


# -- checks ----------------------------------------------------------------------------------------------------------


def _batch_rows(name: str, value: object) -> int:
    return _positive(name, checked_integer(name, value, bits=32))


def _positive(name: str, value: object) -> int:
    count = checked_integer(name, value)
    if count < 1:
        raise InvalidInputError(f"{name} must be greater than 0, got {count}")
    return count


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    return bool(value)


def _fraction(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    return float(value)


def _mode(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    if value not in _MODES:
        raise InvalidInputError(f"Invalid compaction mode {value!r}. Valid values: {', '.join(_MODES)}")
    return value


def _ids(name: str, value: Any) -> tuple[int, ...]:
    return tuple(checked_integer(name, each) for each in value)


def _version(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    return resolve_version(value)


def _goal(name: str, value: Any) -> StorageGoal | None:
    return checked_goal(value, name)


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    **{
        field.name: checked_integer
        for field in fields(CompactionSettings)
        if field.name != "has_eager_remappable_index"
    },
    "batch_size": _batch_rows,
    "max_source_fragments": _positive,
    "max_source_rows": _positive,
    "max_source_bytes": _positive,
    "materialize_deletions": _flag,
    "defer_index_remap": _flag,
    "materialize_deletions_threshold": _fraction,
    "compaction_mode": _mode,
    "excluded_fragment_ids": _ids,
    "data_storage_version": _version,
    "optimize": _goal,
}


# -- config ----------------------------------------------------------------------------------------------------------


def _spelled(text: str) -> bool:
    truth = strict_bool(text.lower())
    if truth is None:
        raise ValueError(text)
    return truth


_READERS: Mapping[Callable[[str, Any], Any], Callable[[str], Any]] = {
    checked_integer: int, _batch_rows: int, _positive: int, _flag: _spelled, _fraction: float, _mode: str, _version: str
}  # fmt: skip
_NOT_CONFIGURABLE = frozenset(
    {"num_threads", "io_buffer_size", "binary_copy_read_batch_bytes", "excluded_fragment_ids", "optimize"}
)


def _configured(config: Mapping[str, str]) -> dict[str, Any]:
    """Read options from the config of a table."""
    found = {}
    for name, check in _CHECKS.items():
        text = config.get(_CONFIG + name)
        if text is None or name in _NOT_CONFIGURABLE:
            continue
        try:
            found[name] = _READERS[check](text)
        except ValueError as error:
            raise InvalidInputError(
                f"the dataset's config {_CONFIG + name} is {text!r}, which is not a valid value"
            ) from error
    return found
