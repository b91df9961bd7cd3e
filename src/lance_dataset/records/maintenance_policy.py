"""Policy of the maintenance of a table, as keys ``maintenance.*`` of its config."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lance_dataset.errors import InvalidInputError, nearest_name_hint
from lance_dataset.table.cleanup.durations import parse_duration

__all__ = ["MaintenancePolicy", "check_maintenance_keys"]

_PREFIX = "maintenance."
_MICROSECOND = 1000
_MAX_COUNT = 2**63 - 1
#: Leases that are shorter than a renewal of a slow store takes would be lost all the time.
_LEAST_LEASE = 1.0
_MOST_LEASE = 24 * 3600.0


@dataclass(frozen=True)
class MaintenancePolicy:
    """Conditions on which `LanceDataset.maintain` does something.

    The config has it as text: `compact_min_fragments` is the key ``maintenance.compact.min_fragments``, and so on.

    Attributes
    ----------
    compact_enabled, indices_enabled, cleanup_enabled
        False to leave out a step.
    compact_min_fragments
        Number of small fragments that can be joined at which the table is compacted.
    compact_deleted_share
        The table is also compacted if a larger share of the rows of a fragment is deleted; None for the threshold of
        ``lance.compaction.materialize_deletions_threshold``, or a tenth.
    indices_uncovered_rows, indices_uncovered_share
        An index is refreshed if it lacks this number of rows, or this share of all rows; one of the two suffices.
    cleanup_older_than, cleanup_retain_versions
        Old versions are at least this old, and not among this number of the newest ones. If neither is set, the
        settings of the automatic cleanup hold, or else two weeks.
    cleanup_min_versions
        Number of old versions at which they are removed.
    lease_seconds
        Time after which other processes may take over from one that was killed.
    """

    compact_enabled: bool = True
    compact_min_fragments: int = 16
    compact_deleted_share: float | None = None
    indices_enabled: bool = True
    indices_uncovered_rows: int = 100_000
    indices_uncovered_share: float = 0.05
    cleanup_enabled: bool = True
    cleanup_older_than: dt.timedelta | None = None
    cleanup_retain_versions: int | None = None
    cleanup_min_versions: int = 1
    lease_seconds: float = 60.0

    @classmethod
    def of(cls, config: Mapping[str, str]) -> MaintenancePolicy:
        """Read the policy from the config of a table; keys that do not begin with ``maintenance.`` are ignored.

        Raises
        ------
        InvalidInputError
            A key is unknown, or a value is not allowed. The message says what is.
        """
        values: dict[str, Any] = {}
        for key, text in config.items():
            if key.startswith(_PREFIX):
                attribute, read = _known(key)
                values[attribute] = read(key, text)
        return cls(**values)


def check_maintenance_keys(values: Mapping[str, str | None]) -> None:
    """Check the new values of a config, as far as they are of the policy. Keys that are removed may have any name.

    Raises
    ------
    InvalidInputError
        A key is unknown, or a value is not allowed.
    """
    MaintenancePolicy.of({key: text for key, text in values.items() if text is not None})


def _known(key: str) -> tuple[str, Callable[[str, str], Any]]:
    found = _KEYS.get(key)
    if found is None:
        raise InvalidInputError(
            f"unknown key {key!r} in the config{nearest_name_hint(key, list(_KEYS))}; keys of the policy of "
            f"maintenance are {', '.join(_KEYS)}"
        )
    return found


def _refused(key: str, text: str, allowed: str) -> InvalidInputError:
    return InvalidInputError(f"the config {key} is {text!r}, but must be {allowed}; change it with update_config")


def _flag(key: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise _refused(key, text, "'true' or 'false'")
    return text == "true"


def _count(key: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,19}", text) or not 1 <= int(text) <= _MAX_COUNT:
        raise _refused(key, text, "a whole number from 1 to 2**63 - 1")
    return int(text)


def _share(key: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise _refused(key, text, "a number from 0 to 1, such as '0.1'")
    return share


def _age(key: str, text: str) -> dt.timedelta:
    try:
        return dt.timedelta(microseconds=parse_duration(text) // _MICROSECOND)
    except OverflowError:
        raise _refused(key, text, "a duration of less than 999,999,999 days") from None
    except InvalidInputError as error:
        raise _refused(key, text, f"a duration, such as '14d' or '12h 30m' ({error})") from None


def _lease(key: str, text: str) -> float:
    seconds = _age(key, text).total_seconds()
    if not _LEAST_LEASE <= seconds <= _MOST_LEASE:
        raise _refused(key, text, "a duration from 1 second to 1 day")
    return seconds


_KEYS: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "maintenance.compact.enabled": ("compact_enabled", _flag),
    "maintenance.compact.min_fragments": ("compact_min_fragments", _count),
    "maintenance.compact.deleted_share": ("compact_deleted_share", _share),
    "maintenance.indices.enabled": ("indices_enabled", _flag),
    "maintenance.indices.uncovered_rows": ("indices_uncovered_rows", _count),
    "maintenance.indices.uncovered_share": ("indices_uncovered_share", _share),
    "maintenance.cleanup.enabled": ("cleanup_enabled", _flag),
    "maintenance.cleanup.older_than": ("cleanup_older_than", _age),
    "maintenance.cleanup.retain_versions": ("cleanup_retain_versions", _count),
    "maintenance.cleanup.min_versions": ("cleanup_min_versions", _count),
    "maintenance.lease": ("lease_seconds", _lease),
}
