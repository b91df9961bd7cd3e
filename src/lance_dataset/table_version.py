"""What the manifest of a version says, as users ask for it."""

from __future__ import annotations

from typing import Any

from lance_dataset.lance_schema import LanceSchema
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.versions import version_info

__all__ = ["TableVersion"]


class TableVersion:
    """One version of a table, known by its manifest."""

    _manifest: Manifest

    @property
    def version(self) -> int:
        """Number of the version this handle shows."""
        return self._manifest.version

    @property
    def lance_schema(self) -> LanceSchema:
        """Schema with field ids."""
        return LanceSchema(self._manifest.schema)

    @property
    def data_storage_version(self) -> str:
        """File version of new data files, such as ``2.0``."""
        return self._manifest.storage_version

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether row ids stay the same when rows move."""
        return self._manifest.uses_stable_row_ids

    @property
    def max_field_id(self) -> int:
        """Highest field id in use."""
        return self._manifest.max_field_id

    @property
    def metadata(self) -> dict[str, str]:
        """Free metadata of the table."""
        return dict(self._manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Metadata of the schema, as text."""
        return {key: value.decode(errors="replace") for key, value in self._manifest.schema.metadata.items()}

    def config(self) -> dict[str, str]:
        """Settings of the table."""
        return dict(self._manifest.config)

    def get_version(self) -> dict[str, Any]:
        """The entry of `versions` for the open version."""
        return version_info(self._manifest)

    def fragment_ids(self) -> list[int]:
        """Ids of the fragments, in scan order."""
        return self._manifest.fragment_list.ids.tolist()
