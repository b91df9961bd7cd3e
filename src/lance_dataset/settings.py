"""Settings of a dataset: its config, the metadata of table, schema and fields, base paths."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

import numpy as np

from lance_dataset.errors import InvalidInputError, nearest_name_hint
from lance_dataset.field_paths import find_field
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.cleanup.auto import INTERVAL, OLDER_THAN
from lance_dataset.table.cleanup.durations import format_duration
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.manifest import BasePath, Manifest
from lance_dataset.table.operations import Operation, UpdateBases, UpdateConfig, UpdateMap
from lance_dataset.table.transaction import Transaction

__all__ = ["AutoCleanupConfig", "Configured", "DatasetBasePath", "auto_cleanup_keys", "auto_cleanup_settings"]

_DEFAULT_INTERVAL = 20
_DEFAULT_SECONDS = 14 * 24 * 3600
_MAX_NUMBER = 2**64 - 1
_Self = TypeVar("_Self", bound="Configured")


class AutoCleanupConfig(TypedDict):
    """When a dataset cleans up by itself.

    Attributes
    ----------
    interval
        After every so many versions.
    older_than_seconds
        Age of the versions that go.
    """

    interval: int
    older_than_seconds: int


@dataclass(frozen=True)
class DatasetBasePath:
    """Another place that holds files of a dataset.

    Attributes
    ----------
    path
        URI or path.
    name
        Name by which writers refer to it, None without one.
    is_dataset_root
        Whether files lie in subfolders there, as in a dataset, or directly.
    id
        Number of the base path; 0 where it is to get one.
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
        """Take over a base path of a manifest."""
        return cls(base.path, base.name, base.is_dataset_root, base.id)

    def to_table(self) -> BasePath:
        """The base path as manifests have it."""
        return BasePath(self.id or 0, self.path, self.name, self.is_dataset_root)


class Configured:
    """A dataset with settings that can be changed, each change in a commit of its own."""

    _manifest: Manifest
    _store: ObjectStore
    _root: str

    def _show(self, manifest: Manifest) -> None:
        raise NotImplementedError

    def _commit_setting(self, operation: Operation, properties: Mapping[str, str] | None = None) -> None:
        change = Transaction(self._manifest.version, operation, properties=dict(properties or {}))
        self._show(commit_transaction(self._store, self._root, change, read_manifest=self._manifest))

    # -- maps --------------------------------------------------------------------------------------------------------

    def update_config(self, values: Mapping[str, str | None], *, replace: bool = False) -> dict[str, str]:
        """Change settings of the dataset, such as ``lance.auto_cleanup.interval``.

        Parameters
        ----------
        values
            New values; None removes a key.
        replace
            Whether all other keys go; then None is ignored.

        Returns
        -------
        dict
            All settings now.

        Raises
        ------
        CommitConflictError
            Another writer changed the same keys meanwhile.
        TypeError
            Keys and values that are not text.
        """
        self._commit_setting(UpdateConfig(config=_update("values", values, replace)))
        return dict(self._manifest.config)

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Remove settings of the dataset; unknown ones are ignored. Errors as for `update_config`."""
        if isinstance(keys, str) or not isinstance(keys, Sequence):
            raise TypeError(f"keys must be a list of texts, not {type(keys).__name__}")
        self.update_config(dict.fromkeys(keys))

    def update_metadata(self, values: Mapping[str, str | None], *, replace: bool = False) -> dict[str, str]:
        """Change the free metadata of the dataset; parameters, result and errors as for `update_config`."""
        self._commit_setting(UpdateConfig(table_metadata=_update("values", values, replace)))
        return dict(self._manifest.table_metadata)

    def update_schema_metadata(self, values: Mapping[str, str | None], *, replace: bool = False) -> dict[str, str]:
        """Change the metadata of the Arrow schema; parameters, result and errors as for `update_config`."""
        self._commit_setting(UpdateConfig(schema_metadata=_update("values", values, replace)))
        return {key: value.decode(errors="replace") for key, value in self._manifest.schema.metadata.items()}

    def update_field_metadata(
        self, field_updates: Mapping[str, Mapping[str, str | None]], *, replace: bool = False
    ) -> None:
        """Change the metadata of fields.

        Parameters
        ----------
        field_updates
            For each field, named by its path (``a``, ``struct.child``, ``list.item``; odd names in back-ticks), new
            values; None removes a key.
        replace
            Whether all other keys of these fields go; then None is ignored.

        Raises
        ------
        FieldNotFoundError
            There is no such field.
        CommitConflictError
            Another writer changed one of the fields meanwhile.
        InvalidInputError
            A field is named twice, or a path is malformed.
        TypeError
            Paths, keys and values that are not text.
        """
        if not isinstance(field_updates, Mapping):
            raise TypeError(f"field_updates must be a mapping, not {type(field_updates).__name__}")
        schema = self._manifest.schema
        updates: dict[int, UpdateMap] = {}
        for path, values in field_updates.items():
            field = find_field(schema, path)
            if field.id in updates:
                raise InvalidInputError(f"field_updates names field {path!r} twice, spelled in two ways")
            updates[field.id] = _update(f"the metadata of field {path!r}", values, replace)
        self._commit_setting(UpdateConfig(field_metadata=updates))

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Deprecated: `update_schema_metadata` with `replace`."""
        _deprecated("replace_schema_metadata", "update_schema_metadata(metadata, replace=True)")
        self.update_schema_metadata(new_metadata, replace=True)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Deprecated: `update_field_metadata` with `replace`."""
        _deprecated("replace_field_metadata", "update_field_metadata({name: metadata}, replace=True)")
        self.update_field_metadata({field_name: new_metadata}, replace=True)

    # -- base paths --------------------------------------------------------------------------------------------------

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """Base paths of the open version by id."""
        return {base.id: DatasetBasePath.from_table(base) for base in self._manifest.base_paths}

    def add_bases(
        self: _Self, new_bases: Sequence[DatasetBasePath], transaction_properties: Mapping[str, str] | None = None
    ) -> _Self:
        """Add base paths, which writers can then put data files in; this handle moves to the new version.

        Parameters
        ----------
        new_bases
            The base paths, with names and paths that are not in use yet.
        transaction_properties
            Stored in the transaction.

        Returns
        -------
        LanceDataset
            This handle.

        Raises
        ------
        InvalidInputError
            A name, path or id is in use.
        CommitConflictError
            Another writer added such a base path meanwhile.
        """
        known = list(self._manifest.base_paths)
        for base in new_bases:
            if not isinstance(base, DatasetBasePath):
                raise TypeError(f"new_bases must be DatasetBasePath objects, not {type(base).__name__}")
            _check_new_base(base.to_table(), known)
            known.append(base.to_table())
        self._commit_setting(UpdateBases(tuple(base.to_table() for base in new_bases)), transaction_properties)
        return self


def _check_new_base(base: BasePath, known: Sequence[BasePath]) -> None:
    for other in known:
        same_name = base.name is not None and base.name == other.name
        if same_name or base.location == other.location or (base.id and base.id == other.id):
            raise InvalidInputError(
                f"Conflict detected: base path {base} has the name, path or id of one that exists: {other}"
            )


def _update(what: str, values: Mapping[str, str | None], replace: bool) -> UpdateMap:
    """Changes of a map, after a check of what the user gave."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{what} must be a mapping of text to text, not {type(values).__name__}")
    for key, value in values.items():
        if not isinstance(key, str) or not (value is None or isinstance(value, str)):
            raise TypeError(f"{what}: keys must be text, values text or None; got {key!r}: {value!r}")
    return UpdateMap(dict(values), bool(replace))


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(f"{name} is deprecated; use {instead}", DeprecationWarning, stacklevel=3)


# -- automatic cleanup -------------------------------------------------------------------------------------------------


def auto_cleanup_settings(options: AutoCleanupConfig | Mapping[str, int], *, complete: bool = False) -> dict[str, str]:
    """The config that makes a dataset clean up by itself.

    Parameters
    ----------
    options
        ``interval`` (20 by default) and ``older_than_seconds`` (two weeks by default), see `AutoCleanupConfig`.
    complete
        Whether both must be given.

    Raises
    ------
    InvalidInputError
        An unknown option, one that is missing, or a number out of range.
    TypeError
        No mapping, or no numbers.
    """
    if not isinstance(options, Mapping):
        raise TypeError(f"options of auto cleanup must be a mapping, not {type(options).__name__}")
    known: dict[str, Any] = {"interval": _DEFAULT_INTERVAL, "older_than_seconds": _DEFAULT_SECONDS}
    for name, value in options.items():
        if name not in known:
            raise InvalidInputError(f"unknown option of auto cleanup {name!r}{nearest_name_hint(str(name), known)}")
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name} of auto cleanup must be an integer, not {type(value).__name__}")
        if not 0 <= value <= _MAX_NUMBER:
            raise InvalidInputError(f"{name} of auto cleanup must be from 0 to 2**64 - 1, got {value}")
    missing = [name for name in known if name not in options]
    if complete and missing:
        raise InvalidInputError(f"auto cleanup needs {' and '.join(missing)}")
    chosen = {**known, **options}
    seconds = int(chosen["older_than_seconds"])
    return {INTERVAL: str(chosen["interval"]), OLDER_THAN: f"{seconds}s" if complete else format_duration(seconds)}


def auto_cleanup_keys() -> list[str]:
    """Config keys that `auto_cleanup_settings` sets."""
    return [INTERVAL, OLDER_THAN]
