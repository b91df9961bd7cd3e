"""Settings that users pass: base paths, and automatic cleanup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa

from lance_dataset.errors import InvalidInputError, nearest_name_hint
from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.cleanup.durations import format_duration
from lance_dataset.table.manifest import BasePath

__all__ = ["AlterColumn", "AutoCleanupConfig", "DatasetBasePath", "auto_cleanup_keys", "auto_cleanup_settings"]

_DEFAULT_INTERVAL = 20
_DEFAULT_SECONDS = 14 * 24 * 3600
_MAX_NUMBER = 2**64 - 1


class AlterColumn(TypedDict, total=False):
    """Changes of one column.

    Attributes
    ----------
    path
        Path of the column: ``a``, ``struct.child``, ``list.item``. Names with special characters are quoted with
        backticks. Required.
    name
        New name of the field itself, not a path.
    nullable
        True if its values may be null.
    data_type
        New type.
    """

    path: str
    name: str
    nullable: bool
    data_type: pa.DataType


class AutoCleanupConfig(TypedDict):
    """Settings of the automatic cleanup of a dataset.

    Attributes
    ----------
    interval
        Number of versions between two cleanups.
    older_than_seconds
        Minimum age in seconds of the versions that are removed.
    """

    interval: int
    older_than_seconds: int


@dataclass(frozen=True)
class DatasetBasePath:
    """Additional location that holds files of a dataset.

    Attributes
    ----------
    path
        URI or path.
    name
        Name by which writers refer to it; None if it does not have one.
    is_dataset_root
        True if its files are in subfolders, as in a dataset; False if they are directly in it.
    id
        Number of the base path; 0 if it is assigned later.
    """

    path: str
    name: str | None = None
    is_dataset_root: bool = False
    id: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.id or 0)
        for name, value in (("path", self.path), ("name", self.name)):
            if not isinstance(value, str) and (name == "path" or value is not None):
                raise TypeError(f"the {name} of a base path must be text, not {type(value).__name__}")

    @classmethod
    def from_table(cls, base: BasePath) -> DatasetBasePath:
        """Make the public record of a base path that a manifest lists."""
        return cls(base.path, base.name, base.is_dataset_root, base.id)

    def to_table(self) -> BasePath:
        """Convert the record to the form of a manifest."""
        return BasePath(self.id or 0, self.path, self.name, self.is_dataset_root)


def auto_cleanup_settings(options: AutoCleanupConfig | Mapping[str, int], *, complete: bool = False) -> dict[str, str]:
    """Return the config entries that enable the automatic cleanup of a dataset.

    Parameters
    ----------
    options
        ``interval`` (20 by default) and ``older_than_seconds`` (two weeks by default), see `AutoCleanupConfig`.
    complete
        True if both options are required.

    Raises
    ------
    InvalidInputError
        An option is unknown, missing or out of range.
    TypeError
        `options` is not a mapping, or a value is not an integer.
    """
    from lance_dataset.table.cleanup.auto import INTERVAL, OLDER_THAN

    if not isinstance(options, Mapping):
        raise TypeError(f"options of auto cleanup must be a mapping, not {type(options).__name__}")
    known: dict[str, Any] = {"interval": _DEFAULT_INTERVAL, "older_than_seconds": _DEFAULT_SECONDS}
    for name, value in options.items():
        if name not in known:
            raise InvalidInputError(f"unknown option of auto cleanup {name!r}{nearest_name_hint(str(name), known)}")
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name} of auto cleanup must be an integer, not {type(value).__name__}")
        if not 0 <= value <= _MAX_NUMBER:
            raise InvalidInputError(f"{name} of auto cleanup must be between 0 and 2**64 - 1, got {value}")
    missing = [name for name in known if name not in options]
    if complete and missing:
        raise InvalidInputError(f"auto cleanup needs {' and '.join(missing)}")
    chosen = {**known, **options}
    seconds = int(chosen["older_than_seconds"])
    return {INTERVAL: str(chosen["interval"]), OLDER_THAN: f"{seconds}s" if complete else format_duration(seconds)}


def auto_cleanup_keys() -> list[str]:
    """Return the config keys that `auto_cleanup_settings` sets."""
    from lance_dataset.table.cleanup.auto import INTERVAL, OLDER_THAN

    return [INTERVAL, OLDER_THAN]
