"""Names of manifest files."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["VERSIONS_FOLDER", "ManifestName", "Naming", "manifest_name", "parse_manifest_name"]

VERSIONS_FOLDER = "_versions"
_SUFFIX = ".manifest"
_MAX = 2**64 - 1
_DETACHED_BIT = 1 << 63
_V2_DIGITS = 20


class Naming(enum.Enum):
    """How version numbers become file names.

    V1 is the plain number, V2 the number counted down from 2**64 - 1 with 20 digits (so that the newest version is
    listed first), DETACHED the plain number behind a ``d``.
    """

    V1 = "v1"
    V2 = "v2"
    DETACHED = "detached"


@dataclass(frozen=True)
class ManifestName:
    """A file name of a manifest taken apart."""

    name: str
    version: int
    naming: Naming


def is_detached(version: int) -> bool:
    """Whether a version number is one of a detached commit."""
    return version >= _DETACHED_BIT


def manifest_name(version: int, naming: Naming) -> str:
    """File name of the manifest of a version."""
    if naming is Naming.V1:
        return f"{version}{_SUFFIX}"
    if naming is Naming.V2:
        return f"{_MAX - version:0{_V2_DIGITS}d}{_SUFFIX}"
    return f"d{version}{_SUFFIX}"


def parse_manifest_name(name: str) -> ManifestName | None:
    """Take a file name apart; None when it is not the name of a manifest."""
    if not name.endswith(_SUFFIX):
        return None
    text = name[: -len(_SUFFIX)]
    detached = text.startswith("d")
    digits = text[1:] if detached else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _V2_DIGITS:
        return None
    number = int(digits)
    if number > _MAX:
        return None
    if detached:
        return ManifestName(name, number, Naming.DETACHED) if is_detached(number) else None
    if len(digits) == _V2_DIGITS:
        number, naming = _MAX - number, Naming.V2
    else:
        naming = Naming.V1
    return None if is_detached(number) else ManifestName(name, number, naming)
