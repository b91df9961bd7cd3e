"""Interface of an external manifest store."""

from __future__ import annotations

import abc
import importlib
from collections.abc import Iterable
from typing import Any

from lance_dataset.errors import UnsupportedError
from lance_dataset.late_dataclass import dataclass

__all__ = ["LARGEST_VERSION", "ExternalManifests", "ManifestEntry", "required_package"]

#: Largest version number that is not detached; detached versions are never the newest one.
LARGEST_VERSION = 2**63 - 1


@dataclass(frozen=True)
class ManifestEntry:
    """Entry of the external store about one version of a table.

    Attributes
    ----------
    version
        Version number.
    path
        Path of its manifest below the root of the table: the final one, or a staging one during a commit.
    size
        Size of the manifest in bytes, None if it is not recorded.
    """

    version: int
    path: str
    size: int | None


class ExternalManifests(abc.ABC):
    """Entries by table and version, with conditional changes. Safe to use from several threads and processes.

    Every read sees every change that was finished before it. Methods raise `StorageError` if the external store does
    not answer, and `InvalidInputError` if it is not set up for this.
    """

    @abc.abstractmethod
    def key(self, uri: str, root: str) -> str:
        """Return the key of a table in the external store.

        Parameters
        ----------
        uri
            URI of the table.
        root
            Path of the table in the store of its objects.
        """

    @abc.abstractmethod
    def get(self, key: str, version: int) -> ManifestEntry | None:
        """Return the entry of a version, None if there is none."""

    @abc.abstractmethod
    def get_latest(self, key: str) -> ManifestEntry | None:
        """Return the entry of the highest version that is not detached, None if there is none."""

    @abc.abstractmethod
    def put_if_absent(self, key: str, entry: ManifestEntry) -> None:
        """Insert an entry.

        Raises
        ------
        AlreadyExistsError
            The version has an entry.
        """

    @abc.abstractmethod
    def put_if_exists(self, key: str, entry: ManifestEntry) -> None:
        """Replace an entry.

        Raises
        ------
        MissingFileError
            The version has no entry.
        """

    @abc.abstractmethod
    def delete(self, key: str, versions: Iterable[int] | None = None) -> None:
        """Remove the entries of some versions, or of all; ignore versions without an entry."""


def required_package(module: str, extra: str, what: str) -> Any:
    """Import a module of an optional package.

    Raises
    ------
    UnsupportedError
        The package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UnsupportedError(
            f"{what} needs the package {package!r}; install it with: pip install 'lance-dataset[{extra}]'"
        ) from error
