"""Where the base paths of a table may lead, and with which options.

A manifest may come from somebody else. Its base paths can name any place that this process can read, so they must mean
the same everywhere, a program can restrict them, and credentials of the table are sent to no other bucket or account.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from lance_dataset.errors import CorruptFileError, InvalidInputError, StoragePermissionError, UnsafePathError
from lance_dataset.io.base import ObjectStore, is_plain_path
from lance_dataset.io.places import Location, is_absolute, location_of, options_elsewhere, without_manifest_store
from lance_dataset.io.secrets import redacted
from lance_dataset.io.vended import VendedOptions
from lance_dataset.table.manifest import BasePath

__all__ = ["EXTERNAL", "BaseAccess", "check_new_base", "checked_trust", "with_base_params", "without_base_params"]

_VARIABLE = "LANCE_TRUSTED_BASES"
#: Number of the place of an object that is not below a base path.
EXTERNAL = -1
_TREE = "/tree/"
#: Storage options of one base path are ``base_{number}.{key}``, or ``base_{uri}.{key}``.
_OWN = "base_"


class BaseAccess:
    """Checks of the base paths of a table, and their options.

    Parameters
    ----------
    store, root
        The table. The store knows which base paths the program trusts.
    storage_options
        Options of the table.
    """

    def __init__(self, store: ObjectStore, root: str, storage_options: Mapping[str, str]) -> None:
        self._store = store
        self._root = root
        self._options = storage_options

    def checked(self, base: BasePath) -> str:
        """Return the URI or absolute path of a base path.

        Raises
        ------
        CorruptFileError
            The path is empty or contains a NUL.
        UnsafePathError
            The path is relative, or the program does not trust this place.
        """
        path = base.path
        if not path or "\0" in path:
            raise CorruptFileError(f"{self._table()}: {_name(base)} is {path!r}, which is not a location")
        trusted = self._trusted()
        if not is_absolute(path):
            path = self._absolute(base, trusted)
        if trusted is not None:
            place = location_of(path)
            known = [location_of(each) for each in trusted]
            if not any(place.is_in(each) for each in (*known, self._own())):
                raise UnsafePathError(
                    f"{self._table()}: {_name(base)} is {redacted(path)!r}, which does not lie in a trusted "
                    f"place ({', '.join(trusted) or 'there is none'}); if it is right, add it to trusted_bases, or to "
                    f"the environment variable {_VARIABLE}"
                )
        return path

    def own_options(self, base: BasePath) -> dict[str, str]:
        """Return the options that the user gave for a base path alone, by its number or by its URI, which wins."""
        by_number, by_uri = {}, {}
        for key, value in self._options.items():
            owner, _, name = key.removeprefix(_OWN).rpartition(".")
            if not key.startswith(_OWN) or not owner:
                continue
            if owner == str(base.id):
                by_number[name] = value
            elif is_absolute(owner) and is_absolute(base.path) and location_of(owner) == location_of(base.path):
                by_uri[name] = value
        return {**by_number, **by_uri}

    def options(self, base: BasePath) -> dict[str, str]:
        """Return the options for access to a base path."""
        return self._divided(base)[0]

    def granted(self, base: BasePath) -> dict[str, str]:
        """Return the options for access to a base path.

        Raises
        ------
        StoragePermissionError
            The base path lies elsewhere, and only the table has credentials.
        """
        options, withheld = self._divided(base)
        if withheld and not self.own_options(base):
            example = f"base_{base.id}.{withheld[0]}"
            raise StoragePermissionError(
                f"{self._table()}: {_name(base)} is {redacted(base.path)!r}, in another bucket, account or "
                "store, so the credentials in storage_options are not used for it; give those for it with its number, "
                f"as in the option {example!r} (with any option that begins with 'base_{base.id}.', missing "
                "credentials are those of the environment)"
            )
        return options

    def _divided(self, base: BasePath) -> tuple[dict[str, str], list[str]]:
        """Return the options for a base path, and the names of the credentials of the table that it does not get."""
        options = {key: value for key, value in self._options.items() if not key.startswith(_OWN)}
        options = without_manifest_store(options)
        withheld: list[str] = []
        own, place = self._own(), location_of(base.path)
        if not place.shares_store(own):
            options, withheld = options_elsewhere(options, own, place)
        return {**options, **self.own_options(base)}, withheld

    def _absolute(self, base: BasePath, trusted: Iterable[str] | None) -> str:
        """Return the place of a relative base path if it is certain or trusted.

        Releases of the reference note the path as the user gave it when the dataset was opened. In a branch, that is
        the path of the main branch, which contains the branch.
        """
        name = base.path.rstrip("/")
        while name.startswith(("./", "~/")):
            name = name[2:].lstrip("/")
        if base.is_dataset_root and is_plain_path(name):
            start = self._root.find(_TREE)
            while start >= 0:
                if self._root[:start].endswith(f"/{name}"):
                    return self._store.uri(self._root[:start])
                start = self._root.find(_TREE, start + 1)
        meant = os.path.abspath(os.path.expanduser(base.path))
        if trusted is not None and any(location_of(meant).is_in(location_of(each)) for each in trusted):
            return meant
        raise UnsafePathError(
            f"{self._table()}: {_name(base)} is {redacted(base.path)!r}, which is relative, so it leads to other "
            f"places in other processes; if it means {meant}, open the dataset with trusted_bases=[{meant!r}], or "
            "clone it again from an absolute path"
        )

    def _trusted(self) -> tuple[str, ...] | None:
        if self._store.trusted_bases is not None:
            return self._store.trusted_bases
        text = os.environ.get(_VARIABLE)
        return None if text is None else checked_trust([each.strip() for each in text.split(",") if each.strip()])

    def _own(self) -> Location:
        return location_of(self._store.uri(self._store.table_root or self._root))

    def _table(self) -> str:
        return self._store.uri(self._root)


def with_base_params(
    storage_options: Mapping[str, str] | None, params: Mapping[str, Mapping[str, str]] | None
) -> Mapping[str, str] | None:
    """Return storage options of a table together with those of base paths.

    Parameters
    ----------
    storage_options
        Options of the table.
    params
        Options of each base path, by its URI or absolute path.

    Raises
    ------
    TypeError
        `params` is not a dictionary of dictionaries of text.
    InvalidInputError
        A base path is neither a URI nor an absolute path, or the name of an option has a dot.
    """
    if params is None:
        return storage_options
    if not isinstance(params, Mapping):
        raise TypeError(f"base_store_params must be a dictionary of options by base path, not {type(params).__name__}")
    found: dict[str, str] = {}
    for uri, options in params.items():
        if not isinstance(uri, str) or not isinstance(options, Mapping):
            raise TypeError(
                "base_store_params must have dictionaries of options by base paths as text, not "
                f"{type(options).__name__} by {type(uri).__name__}"
            )
        if not is_absolute(uri):
            raise InvalidInputError(f"the base path {redacted(uri)!r} of base_store_params must be a URI or absolute")
        for key, value in options.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError(f"option {key!r} of base path {redacted(uri)!r} in base_store_params must be text")
            if "." in key:
                raise InvalidInputError(
                    f"option {key!r} of base path {redacted(uri)!r} in base_store_params: names of options have no dot"
                )
            found[f"{_OWN}{uri}.{key}"] = value
    if isinstance(storage_options, VendedOptions):
        return storage_options.with_own(found)
    return {**(storage_options or {}), **found}


def without_base_params(storage_options: Mapping[str, str]) -> dict[str, str]:
    """Return the storage options that were not given as `base_store_params`."""
    return {
        key: value
        for key, value in storage_options.items()
        if not (key.startswith(_OWN) and is_absolute(key.removeprefix(_OWN)))
    }


def _name(base: BasePath) -> str:
    """Name a base path in messages; an object outside of all of them has the number `EXTERNAL`."""
    return f"base path {base.id}" if base.id != EXTERNAL else "the place of a blob"


def check_new_base(base: BasePath) -> None:
    """Raise InvalidInputError if a base path that is to be added is not absolute."""
    if not is_absolute(base.path) or "\0" in base.path:
        raise InvalidInputError(
            f"base path {redacted(base.path)!r} must be an absolute path or a URI: others mean something "
            "else in another process"
        )


def checked_trust(prefixes: object) -> tuple[str, ...] | None:
    """Return the prefixes of trusted base paths, None for all base paths.

    Raises
    ------
    TypeError
        The value is not a list of text.
    InvalidInputError
        A prefix is neither an absolute path nor a URI.
    """
    if prefixes is None:
        return None
    if not isinstance(prefixes, list | tuple | set | frozenset):
        raise TypeError(f"trusted_bases must be a list of paths and URIs, not {type(prefixes).__name__}")
    texts = []
    for prefix in prefixes:
        if not isinstance(prefix, str | os.PathLike) or not isinstance(os.fspath(prefix), str):
            raise TypeError(f"trusted_bases must be paths and URIs, not {type(prefix).__name__}")
        text = os.path.expanduser(os.fspath(prefix))
        if not is_absolute(text):
            raise InvalidInputError(f"the trusted base {text!r} must be an absolute path or a URI")
        texts.append(str(text))
    return tuple(texts)
