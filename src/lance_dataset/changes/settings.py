"""Changes of the settings of a table: config, base paths, and metadata of the table, the schema and the fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance_dataset.changes.commit import commit_change
from lance_dataset.errors import InvalidInputError
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.maintenance_policy import check_maintenance_keys
from lance_dataset.records.settings import DatasetBasePath
from lance_dataset.table.field_paths import find_field
from lance_dataset.table.manifest import BasePath
from lance_dataset.table.operations import UpdateBases, UpdateConfig, UpdateMap

__all__ = ["add_bases", "update_config", "update_field_metadata", "update_schema_metadata", "update_table_metadata"]


def update_config(snapshot: Snapshot, values: Mapping[str, str | None], *, replace: bool = False) -> Snapshot:
    """Change the config of a table in one commit; see `LanceDataset.update_config`."""
    update = _map_update("values", values, replace)
    check_maintenance_keys(values)
    return commit_change(snapshot, UpdateConfig(config=update))


def update_table_metadata(snapshot: Snapshot, values: Mapping[str, str | None], *, replace: bool) -> Snapshot:
    """Change the metadata of a table in one commit; see `LanceDataset.update_metadata`."""
    return commit_change(snapshot, UpdateConfig(table_metadata=_map_update("values", values, replace)))


def update_schema_metadata(snapshot: Snapshot, values: Mapping[str, str | None], *, replace: bool) -> Snapshot:
    """Change the metadata of the schema in one commit; see `LanceDataset.update_schema_metadata`."""
    return commit_change(snapshot, UpdateConfig(schema_metadata=_map_update("values", values, replace)))


def update_field_metadata(
    snapshot: Snapshot, field_updates: Mapping[str, Mapping[str, str | None]], *, replace: bool
) -> Snapshot:
    """Change the metadata of fields in one commit; see `LanceDataset.update_field_metadata`."""
    if not isinstance(field_updates, Mapping):
        raise TypeError(f"field_updates must be a mapping, not {type(field_updates).__name__}")
    updates: dict[int, UpdateMap] = {}
    for path, values in field_updates.items():
        field = find_field(snapshot.manifest.schema, path)
        if field.id in updates:
            raise InvalidInputError(f"field_updates names field {path!r} twice, spelled in two ways")
        updates[field.id] = _map_update(f"the metadata of field {path!r}", values, replace)
    return commit_change(snapshot, UpdateConfig(field_metadata=updates))


def add_bases(
    snapshot: Snapshot, new_bases: Sequence[DatasetBasePath], properties: Mapping[str, str] | None
) -> Snapshot:
    """Add base paths in one commit; see `LanceDataset.add_bases`."""
    known = list(snapshot.manifest.base_paths)
    for base in new_bases:
        if not isinstance(base, DatasetBasePath):
            raise TypeError(f"new_bases must be DatasetBasePath objects, not {type(base).__name__}")
        _check_new_base(base.to_table(), known)
        known.append(base.to_table())
    operation = UpdateBases(tuple(base.to_table() for base in new_bases))
    return commit_change(snapshot, operation, properties=properties)


def _check_new_base(base: BasePath, known: Sequence[BasePath]) -> None:
    for other in known:
        same_name = base.name is not None and base.name == other.name
        if same_name or base.location == other.location or (base.id and base.id == other.id):
            raise InvalidInputError(
                f"Conflict detected: base path {base} has the name, path or id of one that exists: {other}"
            )


def _map_update(what: str, values: Mapping[str, str | None], replace: bool) -> UpdateMap:
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
