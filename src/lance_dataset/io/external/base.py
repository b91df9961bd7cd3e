"""The interface of an external manifest store."""

from __future__ import annotations

import abc
import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lance_dataset.errors import UnsupportedError

if TYPE_CHECKING:
    from lance_dataset.io.base import ObjectStore

__all__ = ["LARGEST_VERSION", "ExternalManifests", "ManifestEntry", "required_package"]

#: Larger numbers are detached versions, which are never the newest one.
LARGEST_VERSION = 2**63 - 1


@dataclass(frozen=True)
class ManifestEntry:
    """What the external store says about one version of a table.

    Attributes
    ----------
    version
        Version number.
    path
        Path of its manifest below the root of the table: the final one, or a staging one while a commit is under way.
    size
        Size of the manifest in bytes, None where it is not recorded.
    """

    version: int
    path: str
    size: int | None


class ExternalManifests(abc.ABC):
    """Entries by table and version, with conditional changes. Safe to use from several threads and processes.

    Every read sees every change that was finished before it. Methods raise `StorageError` when the external store does
    not answer, and `InvalidInputError` when it is not set up for this.
    """

    @abc.abstractmethod
    def key(self, store: ObjectStore, root: str) -> str:
        """What identifies the table at a path of a store in the external store."""

    @abc.abstractmethod
    def get(self, key: str, version: int) -> ManifestEntry | None:
        """The entry of a version."""

    @abc.abstractmethod
    def get_latest(self, key: str) -> ManifestEntry | None:
        """The entry of the highest version that is not detached."""

    @abc.abstractmethod
    def put_if_absent(self, key: str, entry: ManifestEntry) -> None:
        """Insert an entry.

        Raises
        ------
        AlreadyExistsError
            The version has one.
        """

    @abc.abstractmethod
    def put_if_exists(self, key: str, entry: ManifestEntry) -> None:
        """Replace an entry.

        Raises
        ------
        MissingFileError
            The version has none.
        """

    @abc.abstractmethod
    def delete(self, key: str, versions: Iterable[int] | None = None) -> None:
        """Remove the entries of some versions, or of all; one that is not there is no error."""


def required_package(module: str, extra: str, what: str) -> Any:
    """Import a package that only some users need.

    Raises
    ------
    UnsupportedError
        It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UnsupportedError(
            f"{what} needs the package {package!r}; install it with: pip install 'lance-dataset[{extra}]'"
        ) from error
