"""Names of manifest files."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = [
    "LATEST_COPY",
    "VERSIONS_FOLDER",
    "ManifestName",
    "Naming",
    "is_detached",
    "latest_copy_path",
    "manifest_name",
    "manifest_path",
    "named_path",
    "parse_manifest_name",
]

VERSIONS_FOLDER = "_versions"
#: Copy of the newest manifest beside the folder of versions, kept by releases before 0.20; those before 0.8.1 open
#: nothing else.
LATEST_COPY = "_latest.manifest"
_SUFFIX = ".manifest"
_MAX = 2**64 - 1
_DETACHED_BIT = 1 << 63
_V2_DIGITS = 20


class Naming(enum.Enum):
    """How version numbers become file names.

    V1 is the plain number, V2 the number counted down from 2**64 - 1 with 20 digits (so that the newest version is
    listed first), DETACHED the plain number behind a ``d``. LATEST_COPY is no numbered name: the version is only known
    from the copy that old releases keep of the newest manifest.
    """

    V1 = "v1"
    V2 = "v2"
    DETACHED = "detached"
    LATEST_COPY = "latest copy"


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


def manifest_path(root: str, version: int, naming: Naming) -> str:
    """Path of the manifest of a version."""
    return f"{root}/{VERSIONS_FOLDER}/{manifest_name(version, naming)}"


def latest_copy_path(root: str) -> str:
    """Path of the copy of the newest manifest."""
    return f"{root}/{LATEST_COPY}"


def named_path(root: str, name: ManifestName) -> str:
    """Path of a listed manifest."""
    return latest_copy_path(root) if name.naming is Naming.LATEST_COPY else f"{root}/{VERSIONS_FOLDER}/{name.name}"


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
