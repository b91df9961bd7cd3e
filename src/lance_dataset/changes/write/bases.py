"""Base paths that a write registers, and base paths of its data files."""

from __future__ import annotations

from collections.abc import Sequence

from lance_dataset.changes.write.target import WriteTarget
from lance_dataset.errors import InvalidInputError, LanceError
from lance_dataset.io.resolve import resolve
from lance_dataset.read.location import TableLocation
from lance_dataset.records.settings import DatasetBasePath
from lance_dataset.table.apply.settings import numbered_bases
from lance_dataset.table.manifest import BasePath
from lance_dataset.table.paths import DataFolder, FileLocator

__all__ = ["data_folders", "registered_bases"]


def registered_bases(
    target: WriteTarget, mode: str, initial_bases: Sequence[DatasetBasePath] | None
) -> tuple[BasePath, ...]:
    """Return the base paths of a new table, each with an id.

    Parameters
    ----------
    target
        Target of the write.
    mode
        Mode of the write, for the error message.
    initial_bases
        Base paths that the user passed.

    Raises
    ------
    TypeError
        `initial_bases` is not a list.
    InvalidInputError
        The table already exists, an element is not a `DatasetBasePath`, or two have the same id, path or name.
    """
    if initial_bases is None:
        return ()
    if not isinstance(initial_bases, list | tuple):
        raise TypeError(f"initial_bases must be a list of DatasetBasePath, not {type(initial_bases).__name__}")
    for base in initial_bases:
        if not isinstance(base, DatasetBasePath):
            raise InvalidInputError(f"initial_bases must contain DatasetBasePath objects only, not {base!r}")
    if initial_bases and target.manifest is not None:
        raise InvalidInputError(
            f"Cannot register new bases in {mode} mode: {target.store.uri(target.root)} already exists; pass "
            "initial_bases when it is created, or call add_bases"
        )
    return numbered_bases((), [base.to_table() for base in initial_bases])


def data_folders(
    place: TableLocation,
    bases: Sequence[BasePath],
    target_bases: Sequence[str] | None,
    target_all_bases: bool | None,
) -> list[DataFolder]:
    """Return the folders that the data files of a write are spread over in turn; empty for the table itself.

    Parameters
    ----------
    place
        Location of the table.
    bases
        Its base paths.
    target_bases
        Names or paths of base paths. The location of the table stands for the table itself.
    target_all_bases
        True to use the table itself and all its base paths, False to use the base paths only, None to use
        `target_bases`.

    Raises
    ------
    TypeError
        An argument has the wrong type.
    InvalidInputError
        A base path does not exist, or both arguments are used.
    """
    if target_all_bases is not None and not isinstance(target_all_bases, bool):
        raise TypeError(f"target_all_bases must be True, False or None, not {type(target_all_bases).__name__}")
    if isinstance(target_bases, str):
        raise TypeError("target_bases must be a list of names or paths, not a string")
    if target_all_bases is not None and target_bases:
        raise InvalidInputError("Cannot specify target_all_bases together with target_bases")
    if target_all_bases is None:
        chosen = [_chosen(place, bases, each) for each in target_bases or ()]
    else:
        chosen = _all_bases(bases, target_all_bases)
    locator = FileLocator(place.store, place.root, bases, place.storage_options, place.session)
    return [DataFolder(*locator.data_folder(base_id), base_id) for base_id in chosen]


def _all_bases(bases: Sequence[BasePath], with_dataset: bool) -> list[int | None]:
    if not bases and not with_dataset:
        raise InvalidInputError(
            "target_all_bases=False excludes the dataset itself, but it does not have base paths: register some with "
            "initial_bases or add_bases, or use target_all_bases=True"
        )
    return [*([None] if with_dataset else []), *sorted(base.id for base in bases)]


def _chosen(place: TableLocation, bases: Sequence[BasePath], reference: str) -> int | None:
    """Return the id of the base path that a reference names; None for the table itself."""
    if not isinstance(reference, str):
        raise TypeError(f"target_bases must be a list of names or paths, not one with {reference!r}")
    for base in bases:
        if reference == base.name:
            return base.id
    if _is_dataset(place, reference):
        return None
    for base in bases:
        if reference.rstrip("/") == base.path.rstrip("/"):
            return base.id
    names = ", ".join(repr(base.name or base.path) for base in bases) or "none"
    raise InvalidInputError(f"Base reference {reference!r} not found in available bases: {names}")


def _is_dataset(location: TableLocation, reference: str) -> bool:
    try:
        store, root = resolve(reference, location.storage_options, location.session)
    except LanceError:  # a path as another program wrote it, or a misspelled name
        return False
    return store.uri(root) == location.store.uri(location.root)
