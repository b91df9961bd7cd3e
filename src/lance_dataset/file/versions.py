"""File versions: their names, aliases and number pairs."""

from __future__ import annotations

import warnings

from lance_dataset.errors import InvalidInputError, UnsupportedError, WrongTypeError

__all__ = [
    "DEFAULT_VERSION",
    "READABLE_VERSIONS",
    "WRITABLE_VERSIONS",
    "asked_version",
    "manifest_pair",
    "resolve_version",
]

#: Version of new datasets, as in the reference.
DEFAULT_VERSION = "2.2"
READABLE_VERSIONS = frozenset({"0.1", "2.0", "2.1", "2.2", "2.3"})
WRITABLE_VERSIONS = frozenset({"0.1", "2.0", "2.1", "2.2", "2.3"})
_UNSTABLE_VERSION = "2.3"

_ALIASES = {"0.3": "2.0", "legacy": "0.1", "stable": "2.2", "next": "2.3"}
_KNOWN = ("0.1", "2.0", "2.1", "2.2", "2.3")
_MANIFEST_PAIRS = {"0.1": (0, 2), "2.0": (2, 0), "2.1": (2, 1), "2.2": (2, 2), "2.3": (2, 3)}


def resolve_version(name: str | None) -> str:
    """Return the canonical version to write for a requested one; None requests the default.

    Raises
    ------
    InvalidInputError
        The version does not exist.
    UnsupportedError
        This release cannot write the version.

    Warns
    -----
    UserWarning
        The version is not stable yet.
    """
    if name is None:
        return DEFAULT_VERSION
    if not isinstance(name, str):
        raise WrongTypeError(f"a storage version must be text, such as '2.1', not {name!r}")
    version = _ALIASES.get(name.lower(), name)
    if version not in _KNOWN:
        known = ", ".join([*_KNOWN, *sorted(_ALIASES)])
        raise InvalidInputError(f"Unknown Lance storage version: {name}; known are {known}")
    if version not in WRITABLE_VERSIONS:
        raise UnsupportedError(f"file version {version} cannot be written by this release; use '2.0'")
    if version == _UNSTABLE_VERSION:
        _warn_unstable(version)
    return version


def asked_version(name: str | None, use_legacy_format: bool | None) -> str | None:
    """Return the version the user requested, also by the older parameter `use_legacy_format`, which wins if true."""
    if use_legacy_format:
        return "legacy"
    return DEFAULT_VERSION if name is None and use_legacy_format is not None else name


def _warn_unstable(version: str) -> None:
    """Warn from this line only, so that Python shows the warning once, however many files are written."""
    warnings.warn(
        f"file version {version} is unstable: later releases may not be able to read its files; "
        "write it for experiments only, never for data that must last",
        UserWarning,
        stacklevel=1,
    )


def manifest_pair(version: str) -> tuple[int, int]:
    """Return the (major, minor) pair that a manifest records for data files of a version."""
    return _MANIFEST_PAIRS[version]
