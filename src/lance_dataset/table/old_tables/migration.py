"""Migration of manifest names from the V1 scheme to the V2 scheme, which lists the newest first."""

from __future__ import annotations

from contextlib import suppress

from lance_dataset.errors import AlreadyExistsError, CorruptFileError, MissingFileError
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.flags import check_writable
from lance_dataset.table.naming import VERSIONS_FOLDER, ManifestName, Naming, manifest_path, named_path
from lance_dataset.table.no_table import no_table
from lance_dataset.table.old_tables.latest_copy import adopt_latest_copy, remove_latest_copy
from lance_dataset.table.protocol import commit_protocol
from lance_dataset.table.versions import find_latest, list_manifests, read_named

__all__ = ["migrate_names"]


def migrate_names(store: ObjectStore, root: str) -> None:
    """Rename all V1 manifests of a table to their V2 names.

    Every version has a name at any time: a manifest first gets its new name, then loses the old one. The newest is
    renamed first, so that the first V2 name in a listing is always the latest version. The next run finishes the work
    of an interrupted one. A table that is already migrated is left unchanged.

    Parameters
    ----------
    store, root
        The table. No other writer should be active. One that knows only the old name of the newest version may commit
        the next one under an old name, which a second run then renames.

    Raises
    ------
    DatasetNotFoundError
        The table does not exist.
    CorruptFileError
        A version exists under both names with different content.
    UnsupportedError
        The table uses a feature that this release cannot maintain.
    """
    latest = find_latest(store, root)
    if latest is None:
        raise no_table(store, root)
    check_writable(read_named(store, root, latest).writer_flags, store.uri(named_path(root, latest)))
    if latest.naming is Naming.LATEST_COPY:
        adopt_latest_copy(store, root)
    old = [name for name in list_manifests(store, root) if name.naming is Naming.V1]
    for name in reversed(old):
        _rename(store, root, name)
    store.sync(f"{root}/{VERSIONS_FOLDER}")
    remove_latest_copy(store, root)  # even if nothing was renamed: an interrupted run may have left it
    store.sync(root)


def _rename(store: ObjectStore, root: str, name: ManifestName) -> None:
    before, after = named_path(root, name), manifest_path(root, name.version, Naming.V2)
    with suppress(MissingFileError):  # another migration was faster
        content = store.read(before)
        try:
            store.put_if_absent(after, content)
        except AlreadyExistsError:
            if store.read(after) != content:
                raise CorruptFileError(
                    f"{store.uri(before)} and {store.uri(after)} are the same version with different content; move the "
                    "one away that is not part of this dataset"
                ) from None
        commit_protocol(store).renamed(store, root, name.version, Naming.V2)
        store.delete(before)
