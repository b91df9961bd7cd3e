"""Properties of a version, taken from its manifest."""

from __future__ import annotations

from typing import cast

from lance_dataset.read.shown import Shown
from lance_dataset.records.results import Version
from lance_dataset.records.schema import LanceSchema
from lance_dataset.table.versions import version_info

__all__ = ["TableVersion"]


class TableVersion(Shown):
    """Properties of a version, taken from its manifest."""

    @property
    def version(self) -> int:
        """Number of the version this handle shows."""
        return self.snapshot.manifest.version

    @property
    def branch(self) -> str | None:
        """Name of the open branch, None for the main branch."""
        from lance_dataset.table.references.names import branch_of

        return branch_of(self.snapshot.manifest, self.snapshot.root)

    @property
    def lance_schema(self) -> LanceSchema:
        """Schema with field ids."""
        return LanceSchema(self.snapshot.manifest.schema)

    @property
    def data_storage_version(self) -> str:
        """File version of new data files, such as ``2.0``."""
        return self.snapshot.manifest.storage_version

    @property
    def has_stable_row_ids(self) -> bool:
        """True if row ids stay the same when rows move."""
        return self.snapshot.manifest.uses_stable_row_ids

    @property
    def max_field_id(self) -> int:
        """Highest field id in use."""
        return self.snapshot.manifest.max_field_id

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the table, set by users."""
        return dict(self.snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """Metadata of the schema, as text."""
        return {key: value.decode(errors="replace") for key, value in self.snapshot.manifest.schema.metadata.items()}

    def config(self) -> dict[str, str]:
        """Return the settings of the table."""
        return dict(self.snapshot.manifest.config)

    def get_version(self) -> Version:
        """Return the entry of `versions` for the open version."""
        return cast("Version", version_info(self.snapshot.manifest))

    def fragment_ids(self) -> list[int]:
        """Return the ids of the fragments, in scan order."""
        return self.snapshot.manifest.fragment_list.ids.tolist()
