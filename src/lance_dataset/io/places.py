"""Places that URIs name, compared without connecting to a store; and the options that may go from one to another."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

from lance_dataset.io.cloud_options import AZURE, GCS, S3, StoreKind, is_credential, is_shared_option
from lance_dataset.io.uris import LOCAL_SCHEMES, file_path, has_authority, split_scheme
from lance_dataset.late_dataclass import dataclass

__all__ = ["Location", "is_absolute", "location_of", "options_elsewhere", "without_manifest_store"]

_DRIVE = re.compile(r"/?[A-Za-z]:[\\/]")
_DYNAMO = "s3+ddb"
_KINDS: Mapping[str, StoreKind] = {"s3": S3, "gs": GCS, "az": AZURE, "abfss": AZURE}
_MANIFEST_STORE = frozenset({"manifest_store_url", "manifest_store_table"})


@dataclass(frozen=True)
class Location:
    """Place that a URI names.

    Attributes
    ----------
    scheme
        Scheme in lower case; ``file`` for local paths.
    authority
        Bucket, or container and account; empty for local files.
    names
        Names in the path. Those of a local path are the real ones, without links.
    """

    scheme: str
    authority: str
    names: tuple[str, ...]

    @property
    def kind(self) -> StoreKind | None:
        """Kind of the store, None unless it is a cloud store."""
        return _KINDS.get(self.scheme)

    def is_in(self, other: Location) -> bool:
        """Return True if this place is another one, or lies below it."""
        same_store = (self.scheme, self.authority) == (other.scheme, other.authority)
        return same_store and ".." not in self.names and self.names[: len(other.names)] == other.names

    def shares_store(self, other: Location) -> bool:
        """Return True if both lie in the same bucket of the same account, so that credentials of one are for both."""
        return (self.scheme, self.authority) == (other.scheme, other.authority)


def is_absolute(text: str) -> bool:
    """Return True for a URI with a scheme and for an absolute path, which mean the same in every process."""
    scheme, rest = split_scheme(text)
    if scheme in LOCAL_SCHEMES:
        return rest.startswith("/")
    return has_authority(text) or text.startswith("/") or _DRIVE.match(text) is not None


def location_of(text: str) -> Location:
    """Return the place that a URI or path names.

    Raises
    ------
    InvalidInputError
        A file URI names another host or is relative.
    """
    scheme, rest = split_scheme(text)
    if scheme in ("", *LOCAL_SCHEMES):
        path = file_path(text) if scheme else os.path.expanduser(rest)
        return Location("file", "", _names(os.path.realpath(path.replace("\0", "")).replace(os.sep, "/")))
    if scheme == "memory":
        return Location(scheme, "", _names(rest))
    if scheme == _DYNAMO:
        scheme, rest = "s3", rest.partition("?")[0]
    authority, _, path = rest.partition("/")
    return Location(scheme, authority, _names(unquote(path)))


def options_elsewhere(options: Mapping[str, str], own: Location, target: Location) -> tuple[dict[str, str], list[str]]:
    """Return the options of a store that may be used for one in another bucket, account or host.

    Parameters
    ----------
    options
        Storage options of a table.
    own, target
        Place of the table, and the other place.

    Returns
    -------
    options : dict
        Those without credentials. Options of another kind of store are left out if their names may mean something else
        there.
    withheld : list of str
        Names of the credentials that stores of this kind would use.
    """
    kind = target.kind
    if kind is None:
        return dict(options), []
    withheld = [key for key in options if is_credential(kind, key)]
    return {key: value for key, value in options.items() if is_shared_option(kind, key, own.kind)}, withheld


def without_manifest_store(options: Mapping[str, str]) -> dict[str, str]:
    """Return options without those of the manifest store of a table, which its base paths do not use."""
    return {key: value for key, value in options.items() if key.lower() not in _MANIFEST_STORE}


def _names(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name)
