"""Changes of the settings of a table."""

from __future__ import annotations

from collections.abc import Mapping

from lance_dataset.changes.commit import commit_change
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.operations import UpdateConfig, UpdateMap

__all__ = ["map_update", "update_config"]


def update_config(snapshot: Snapshot, values: Mapping[str, str | None], *, replace: bool = False) -> Snapshot:
    """Change the config of a table in one commit; see `LanceDataset.update_config`."""
    return commit_change(snapshot, UpdateConfig(config=map_update("values", values, replace)))


def map_update(what: str, values: Mapping[str, str | None], replace: bool) -> UpdateMap:
    """Check a map of changes that the user passed, and return it as an update.

    Raises
    ------
    TypeError
        `values` is not a mapping of text to text or None.
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"{what} must be a mapping of text to text, not {type(values).__name__}")
    for key, value in values.items():
        if not isinstance(key, str) or not (value is None or isinstance(value, str)):
            raise TypeError(f"{what}: keys must be text, values text or None; got {key!r}: {value!r}")
    return UpdateMap(dict(values), bool(replace))
