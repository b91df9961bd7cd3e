"""Base class of the handles that show a snapshot and can move to another: `Shown`."""

from __future__ import annotations

from typing import TypeVar

from lance_dataset.read.snapshot import Snapshot

__all__ = ["Shown"]

_Self = TypeVar("_Self", bound="Shown")


class Shown:
    """Base class of handles that show one version of a table and can move to another.

    Code below the public handles works on the `snapshot`, which never changes.
    """

    _snapshot: Snapshot

    @classmethod
    def showing(cls: type[_Self], snapshot: Snapshot) -> _Self:
        """Make a handle that shows a snapshot."""
        handle = cls.__new__(cls)
        handle._snapshot = snapshot
        return handle

    @property
    def snapshot(self) -> Snapshot:
        """Version that the handle shows now."""
        return self._snapshot

    def show(self, snapshot: Snapshot) -> None:
        """Move the handle to another version of the table."""
        left = self._snapshot
        self._snapshot = snapshot
        if snapshot.manifest is not left.manifest:
            place = left.location
            place.session.metadata.forget_table(
                place.store, place.root, left.manifest, place.storage_options, place.result_limit
            )
