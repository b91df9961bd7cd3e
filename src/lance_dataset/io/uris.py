"""Schemes of URIs, and the paths that file URIs name."""

from __future__ import annotations

import re
from urllib.parse import unquote

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.io.secrets import redacted

__all__ = [
    "CLOUD_SCHEMES",
    "LOCAL_SCHEMES",
    "file_path",
    "has_authority",
    "has_scheme",
    "split_scheme",
    "unknown_scheme",
]

#: A single letter before the colon is a drive. Without slashes, what precedes the colon may also be part of a name.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//)?")
LOCAL_SCHEMES = frozenset({"file", "file-object-store"})
CLOUD_SCHEMES = frozenset({"s3", "gs", "az", "abfss"})


def has_scheme(text: str) -> bool:
    """Return True for a URI, False for a path."""
    return _SCHEME.match(text) is not None


def has_authority(text: str) -> bool:
    """Return True for a URI with two slashes after the scheme."""
    match = _SCHEME.match(text)
    return match is not None and match.group(2) is not None


def split_scheme(text: str) -> tuple[str, str]:
    """Return the scheme of a URI in lower case, and what follows it: without ``//`` except for local files.

    The scheme of a path is empty.
    """
    match = _SCHEME.match(text)
    if match is None:
        return "", text
    scheme = match.group(1).lower()
    return scheme, text[match.end(1) + 1 if scheme in LOCAL_SCHEMES else match.end() :]


def file_path(uri: str) -> str:
    """Return the path of a file URI: ``file:/a``, ``file:///a`` or ``file://localhost/a``.

    Raises
    ------
    InvalidInputError
        The URI names another host, its path is not absolute, or it contains a NUL.
    """
    _, rest = split_scheme(uri)
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        path = slash + path
    if host.lower() not in ("", "localhost"):
        raise InvalidInputError(f"{redacted(uri)!r} names a host; a file URI must be absolute, as in 'file:///a/b'")
    if not path.startswith("/"):
        raise InvalidInputError(f"{redacted(uri)!r} is relative; a file URI must be absolute, as in 'file:///a/b'")
    decoded = unquote(path)
    if "\0" in decoded:
        raise InvalidInputError(f"{redacted(uri)!r} contains a NUL character")
    # file:///C:/a
    return decoded[1:] if re.match(r"/[A-Za-z]:", decoded) else decoded


def unknown_scheme(uri: str) -> UnsupportedError:
    """Make the error for a URI that no store knows."""
    scheme, _ = split_scheme(uri)
    known = ", ".join(f"'{each}://...'" for each in sorted(CLOUD_SCHEMES))
    text = (
        f"No object store provider found for scheme {scheme!r}: use a plain path, 'file://...', 'memory://...' or a "
        f"cloud store ({known})"
    )
    if not has_authority(uri):
        slashes = f"; a URI has '{scheme}://'" if scheme in CLOUD_SCHEMES or scheme == "memory" else ""
        text += f"{slashes}; a local path with a colon in its first name begins with './'"
    return UnsupportedError(text)
