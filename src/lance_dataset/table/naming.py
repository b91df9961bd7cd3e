"""Names of manifest files."""

from __future__ import annotations

import enum
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

__all__ = [
    "LATEST_COPY",
    "VERSIONS_FOLDER",
    "VERSION_HINT",
    "ManifestName",
    "Naming",
    "final_manifest_name",
    "is_detached",
    "latest_copy_path",
    "manifest_name",
    "manifest_path",
    "named_path",
    "newest_names",
    "parse_manifest_name",
    "random_detached_version",
    "sorted_names",
]

VERSIONS_FOLDER = "_versions"
#: Copy of the newest manifest beside the folder of versions, written by releases before 0.20. Those before 0.8.1 open
#: nothing else.
LATEST_COPY = "_latest.manifest"
#: File beside the manifests with the number of a recent version. Nothing depends on it.
VERSION_HINT = "latest_version_hint.json"
_SUFFIX = ".manifest"
_MAX = 2**64 - 1
_DETACHED_BIT = 1 << 63
_V2_DIGITS = 20
_V2_LENGTH = _V2_DIGITS + len(_SUFFIX)
#: Number of names to read after the first one, fewer than stores list in one request.
_PAGE = 900
_V1_LENGTHS = range(1 + len(_SUFFIX), _V2_LENGTH)


class Naming(enum.Enum):
    """Mapping of version numbers to file names.

    V1 is the plain number. V2 is the number counted down from 2**64 - 1 with 20 digits, so that the newest version is
    listed first. DETACHED is the plain number with the prefix ``d``. LATEST_COPY is not a numbered name: the version is
    known only from the copy of the newest manifest that old releases write.
    """

    V1 = "v1"
    V2 = "v2"
    DETACHED = "detached"
    LATEST_COPY = "latest copy"


@dataclass(frozen=True, slots=True)
class ManifestName:
    """A file name of a manifest split into parts."""

    name: str
    version: int
    naming: Naming


def random_detached_version() -> int:
    """Return a random number for a detached commit. Collisions do not occur in practice."""
    return secrets.randbits(63) | _DETACHED_BIT


def is_detached(version: int) -> bool:
    """Return True if a version number belongs to a detached commit."""
    return version >= _DETACHED_BIT


def manifest_name(version: int, naming: Naming) -> str:
    """Return the file name of the manifest of a version."""
    if naming is Naming.V1:
        return f"{version}{_SUFFIX}"
    if naming is Naming.V2:
        return f"{_MAX - version:0{_V2_DIGITS}d}{_SUFFIX}"
    return f"d{version}{_SUFFIX}"


def manifest_path(root: str, version: int, naming: Naming) -> str:
    """Return the path of the manifest of a version."""
    return f"{root}/{VERSIONS_FOLDER}/{manifest_name(version, naming)}"


def latest_copy_path(root: str) -> str:
    """Return the path of the copy of the newest manifest."""
    return f"{root}/{LATEST_COPY}"


def named_path(root: str, name: ManifestName) -> str:
    """Return the path of a listed manifest."""
    return latest_copy_path(root) if name.naming is Naming.LATEST_COPY else f"{root}/{VERSIONS_FOLDER}/{name.name}"


def parse_manifest_name(name: str) -> ManifestName | None:
    """Parse a file name. Return None if it is not the name of a manifest."""
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


def final_manifest_name(name: str) -> str | None:
    """Return the final name of a manifest, given that name or its staging name. None for any other name."""
    stem, suffix, rest = name.partition(_SUFFIX)
    return stem + suffix if suffix and (not rest or rest.startswith("-")) else None


def sorted_names(names: Iterable[str]) -> list[ManifestName]:
    """Return the names of numbered manifests among some names, ordered by version, then V1 before V2."""
    parsed = (parse_manifest_name(name) for name in names)
    return sorted(
        (name for name in parsed if name is not None and name.naming is not Naming.DETACHED),
        key=lambda name: (name.version, name.naming.value),
    )


def newest_names(names: Iterable[str], *, in_order: bool, exists: Callable[[str], bool]) -> list[ManifestName]:
    """Return only the name of the newest version if all names are V2, otherwise all names by version.

    Parameters
    ----------
    names
        Names in a folder of versions. No more are read than needed.
    in_order
        True if the names are sorted. Then the first V2 name is that of the newest version, unless there are V1 names
        too. One request lists all names of most tables. In tables with more versions, V1 names like 1 or 17 come before
        it, and a program that continued with V1 names is detected by the V1 name of the next version.
    exists
        Returns True if a name exists.
    """
    rest = iter(names)
    if not in_order:
        return _newest(list(rest))
    for text in rest:
        name = parse_manifest_name(text)
        if name is None or name.naming is Naming.DETACHED:
            continue
        page = [text, *islice(rest, _PAGE)]
        is_long = len(page) > _PAGE
        if is_long and name.naming is Naming.V2 and not exists(manifest_name(name.version + 1, Naming.V1)):
            return [name]
        return _newest([*page, *rest])
    return []


def _newest(names: list[str]) -> list[ManifestName]:
    return _newest_alone(names) or sorted_names(names)


def _newest_alone(names: list[str]) -> list[ManifestName]:
    """Return the newest name if all are of one scheme, without parsing each. Empty if that cannot be determined.

    There may be very many names. V1 names are always shorter than V2 names.
    """
    if VERSION_HINT in names:
        names.remove(VERSION_HINT)
    lengths = set(map(len, names))
    if lengths.isdisjoint(_V1_LENGTHS):
        if len(lengths) > 1:
            names = [name for name in names if len(name) == _V2_LENGTH]
        newest = parse_manifest_name(min(names, default=""))
        return [newest] if newest is not None and newest.naming is Naming.V2 else []
    if max(lengths) in _V1_LENGTHS:
        try:
            version = max(int(name.removesuffix(_SUFFIX)) for name in names)
        except ValueError:
            return []
        newest = parse_manifest_name(manifest_name(version, Naming.V1))
        return [newest] if newest is not None and newest.name in names else []
    return []
