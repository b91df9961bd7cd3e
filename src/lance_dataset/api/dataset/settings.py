"""Settings of a dataset: config, base paths, and metadata of the table, the schema and the fields."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TypeVar

from lance_dataset.read.shown import Shown
from lance_dataset.records.settings import DatasetBasePath

__all__ = ["Configured"]

_Self = TypeVar("_Self", bound="Configured")


class Configured(Shown):
    """Settings of a dataset. Each change is a separate commit."""

    # -- maps --------------------------------------------------------------------------------------------------------

    def update_config(self, values: Mapping[str, str | None], *, replace: bool = False) -> dict[str, str]:
        """Change settings of the dataset, such as ``lance.auto_cleanup.interval``.

        Parameters
        ----------
        values
            New values; None removes a key.
        replace
            True to remove all other keys. None values are then ignored.

        Returns
        -------
        dict
            All settings after the change.

        Raises
        ------
        CommitConflictError
            Another writer changed the same keys.
        InvalidInputError
            A key that begins with ``maintenance.`` is not of the policy of `maintain`, or has a value that is not
            allowed.
        TypeError
            A key or value is not text.
        """
        from lance_dataset.changes.settings import update_config

        self.show(update_config(self.snapshot, values, replace=replace))
        return dict(self.snapshot.manifest.config)

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Remove settings of the dataset. Unknown keys are ignored. Errors are those of `update_config`."""
        if isinstance(keys, str) or not isinstance(keys, Sequence):
            raise TypeError(f"keys must be a list of texts, not {type(keys).__name__}")
        self.update_config(dict.fromkeys(keys))

    def update_metadata(self, values: Mapping[str, str | None], *, replace: bool = False) -> dict[str, str]:
        """Change the table metadata. Parameters, result and errors are those of `update_config`."""
        from lance_dataset.changes.settings import update_table_metadata

        self.show(update_table_metadata(self.snapshot, values, replace=replace))
        return dict(self.snapshot.manifest.table_metadata)

    def update_schema_metadata(self, values: Mapping[str, str | None], *, replace: bool = False) -> dict[str, str]:
        """Change the metadata of the Arrow schema. Parameters, result and errors are those of `update_config`."""
        from lance_dataset.changes.settings import update_schema_metadata

        self.show(update_schema_metadata(self.snapshot, values, replace=replace))
        return {key: value.decode(errors="replace") for key, value in self.snapshot.manifest.schema.metadata.items()}

    def update_field_metadata(
        self, field_updates: Mapping[str, Mapping[str, str | None]], *, replace: bool = False
    ) -> None:
        """Change the metadata of fields.

        Parameters
        ----------
        field_updates
            New values by field path (``a``, ``struct.child``, ``list.item``; unusual names in back-ticks). A value of
            None removes a key.
        replace
            True to remove all other keys of these fields. None values are then ignored.

        Raises
        ------
        FieldNotFoundError
            A field does not exist.
        CommitConflictError
            Another writer changed one of the fields.
        InvalidInputError
            A field is named twice, or a path is malformed.
        TypeError
            A path, key or value is not text.
        """
        from lance_dataset.changes.settings import update_field_metadata

        self.show(update_field_metadata(self.snapshot, field_updates, replace=replace))

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Replace the metadata of the schema. Deprecated: use `update_schema_metadata` with ``replace=True``."""
        _deprecated("replace_schema_metadata", "update_schema_metadata(metadata, replace=True)")
        self.update_schema_metadata(new_metadata, replace=True)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Replace the metadata of a field. Deprecated: use `update_field_metadata` with ``replace=True``."""
        _deprecated("replace_field_metadata", "update_field_metadata({name: metadata}, replace=True)")
        self.update_field_metadata({field_name: new_metadata}, replace=True)

    # -- base paths --------------------------------------------------------------------------------------------------

    def base_paths(self) -> dict[int, DatasetBasePath]:
        """Return the base paths of the open version by id."""
        return {base.id: DatasetBasePath.from_table(base) for base in self.snapshot.manifest.base_paths}

    def add_bases(
        self: _Self, new_bases: Sequence[DatasetBasePath], transaction_properties: Mapping[str, str] | None = None
    ) -> _Self:
        """Add base paths, where writers can then store data files; move this handle to the new version.

        Parameters
        ----------
        new_bases
            The base paths. Their names and paths must not be in use yet.
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
            Another writer added a base path with the same name, path or id.
        """
        from lance_dataset.changes.settings import add_bases

        self.show(add_bases(self.snapshot, new_bases, transaction_properties))
        return self


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(f"{name} is deprecated; use {instead}", DeprecationWarning, stacklevel=3)
