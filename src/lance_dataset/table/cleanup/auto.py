"""Automatic cleanup after every n-th commit, as configured in the table's config."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.option_values import strict_bool
from lance_dataset.table.cleanup.durations import parse_duration
from lance_dataset.table.cleanup.plan import CleanupPolicy
from lance_dataset.table.cleanup.removal import Removed, cleanup
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.naming import is_detached

__all__ = ["INTERVAL", "OLDER_THAN", "auto_cleanup", "auto_cleanup_policy", "configured_limits"]

_PREFIX = "lance.auto_cleanup."
INTERVAL = f"{_PREFIX}interval"
OLDER_THAN = f"{_PREFIX}older_than"
_RETAIN_VERSIONS = f"{_PREFIX}retain_versions"
_RATE_LIMIT = f"{_PREFIX}delete_rate_limit"
_CONCURRENCY = f"{_PREFIX}delete_concurrency"
_REFERENCED_BRANCH = f"{_PREFIX}referenced_branch"
_MAX_NUMBER = 2**64 - 1

_log = logging.getLogger(__name__)
_Value = TypeVar("_Value")


def auto_cleanup(store: ObjectStore, root: str, manifest: Manifest) -> None:
    """Clean up if the config of a newly committed version requests it.

    The commit has already succeeded, so errors are only logged.

    Parameters
    ----------
    store, root
        The table, or a branch of it.
    manifest
        The new version.
    """
    if INTERVAL not in manifest.config:
        return
    try:
        policy = auto_cleanup_policy(manifest)
        if policy is not None:
            removed = cleanup(store, root, manifest, policy)
            if removed != Removed():
                _log.info("auto cleanup after version %d of %s: %s", manifest.version, store.uri(root), removed)
    except Exception as error:
        _log.warning(
            "auto cleanup failed after version %d of %s was committed: %s", manifest.version, store.uri(root), error
        )


def auto_cleanup_policy(manifest: Manifest) -> CleanupPolicy | None:
    """Return the cleanup policy that the config sets after the commit of a version, None for no cleanup.

    The version before the new one always stays, because someone, perhaps the writer itself, was just using it.

    Parameters
    ----------
    manifest
        The new version.

    Raises
    ------
    InvalidInputError
        A setting has an invalid value.
    """
    config = manifest.config
    interval = _setting(config, INTERVAL, _number)
    if interval is None or is_detached(manifest.version) or (interval and manifest.version % interval):
        return None
    age = _setting(config, OLDER_THAN, parse_duration)
    # The reference validates this setting, but it does not make the cleanup include any branch.
    _setting(config, _REFERENCED_BRANCH, _flag)
    return CleanupPolicy(
        before_nanos=None if age is None else time.time_ns() - age,
        before_version=manifest.version - 1,
        retain_versions=_setting(config, _RETAIN_VERSIONS, _number),
        delete_rate_limit=_setting(config, _RATE_LIMIT, _number),
        delete_concurrency=_setting(config, _CONCURRENCY, _number),
    )


def configured_limits(config: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return the age in nanoseconds and the number of versions that the automatic cleanup keeps, None if not set.

    Both are None if the automatic cleanup is off.

    Raises
    ------
    InvalidInputError
        A setting has an invalid value.
    """
    if INTERVAL not in config:
        return None, None
    return _setting(config, OLDER_THAN, parse_duration), _setting(config, _RETAIN_VERSIONS, _number)


def _setting(config: Mapping[str, str], key: str, convert: Callable[[str], _Value]) -> _Value | None:
    text = config.get(key)
    if text is None:
        return None
    try:
        return convert(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"config {key} = {text!r}: {error}; change it with update_config") from error


def _number(text: str) -> int:
    if not re.fullmatch(r"\+?[0-9]{1,20}", text) or int(text) > _MAX_NUMBER:
        raise InvalidInputError("must be a whole number from 0 to 2**64 - 1")
    return int(text)


def _flag(text: str) -> bool:
    truth = strict_bool(text)
    if truth is None:
        raise InvalidInputError("must be 'true' or 'false'")
    return truth
