"""Which base paths a write registers, and which its data files go to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance_dataset.errors import InvalidInputError, LanceError
from lance_dataset.io.resolve import resolve
from lance_dataset.settings import DatasetBasePath
from lance_dataset.table.apply.settings import numbered_bases
from lance_dataset.table.manifest import BasePath
from lance_dataset.table.paths import DataFolder, FileLocator
from lance_dataset.target import WriteTarget

__all__ = ["data_folders", "registered_bases"]


def registered_bases(
    target: WriteTarget, mode: str, initial_bases: Sequence[DatasetBasePath] | None
) -> tuple[BasePath, ...]:
    """The base paths of a new dataset, each with an id.

    Parameters
    ----------
    target
        The dataset.
    mode
        How it is written, for the message.
    initial_bases
        What the user gave.

    Raises
    ------
    TypeError
        No list.
    InvalidInputError
        The dataset exists already, an element is no `DatasetBasePath`, or two have the same id, path or name.
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
            f"Cannot register new bases in {mode} mode: {target.store.uri(target.root)} exists already; give "
            "initial_bases when it is created, or call add_bases"
        )
    return numbered_bases((), [base.to_table() for base in initial_bases])


def data_folders(
    target: WriteTarget,
    target_bases: Sequence[str] | None,
    target_all_bases: bool | None,
    storage_options: Mapping[str, str] | None,
) -> list[DataFolder]:
    """Where the data files of a write go in turn; nothing for the dataset itself.

    Parameters
    ----------
    target
        The dataset; `WriteTarget.new_bases` counts if it is to be created.
    target_bases
        Names or paths of base paths; the location of the dataset means the dataset itself.
    target_all_bases
        Take all base paths, and the dataset itself first if True; None to take none of them.
    storage_options
        Options of the store, see `FileLocator`.

    Raises
    ------
    TypeError
        A choice has the wrong type.
    InvalidInputError
        There is no such base path, or both ways of choosing are used.
    """
    if target_all_bases is not None and not isinstance(target_all_bases, bool):
        raise TypeError(f"target_all_bases must be True, False or None, not {type(target_all_bases).__name__}")
    if isinstance(target_bases, str):
        raise TypeError("target_bases must be a list of names or paths, not a text")
    if target_all_bases is not None and target_bases:
        raise InvalidInputError("Cannot specify target_all_bases together with target_bases")
    bases = target.new_bases if target.manifest is None else target.manifest.base_paths
    if target_all_bases is None:
        chosen = [_chosen(target, bases, each, storage_options) for each in target_bases or ()]
    else:
        chosen = _all_bases(bases, target_all_bases)
    locator = FileLocator(target.store, target.root, bases, storage_options, target.session)
    return [DataFolder(*locator.data_folder(base_id), base_id) for base_id in chosen]


def _all_bases(bases: Sequence[BasePath], with_dataset: bool) -> list[int | None]:
    if not bases and not with_dataset:
        raise InvalidInputError(
            "target_all_bases=False leaves out the dataset itself, which has no base paths: register some with "
            "initial_bases or add_bases, or use target_all_bases=True"
        )
    return [*([None] if with_dataset else []), *sorted(base.id for base in bases)]


def _chosen(
    target: WriteTarget, bases: Sequence[BasePath], reference: str, storage_options: Mapping[str, str] | None
) -> int | None:
    """Id of the base path that is meant, None for the dataset itself."""
    if not isinstance(reference, str):
        raise TypeError(f"target_bases must be a list of names or paths, not one with {reference!r}")
    for base in bases:
        if reference == base.name:
            return base.id
    if _is_dataset(target, reference, storage_options):
        return None
    for base in bases:
        if reference.rstrip("/") == base.path.rstrip("/"):
            return base.id
    names = ", ".join(repr(base.name or base.path) for base in bases) or "none"
    raise InvalidInputError(f"Base reference {reference!r} not found in available bases: {names}")


def _is_dataset(target: WriteTarget, reference: str, storage_options: Mapping[str, str] | None) -> bool:
    try:
        store, root = resolve(reference, storage_options, target.session)
    except LanceError:  # a path as another program wrote it, or a misspelled name
        return False
    return store.uri(root) == target.store.uri(target.root)
