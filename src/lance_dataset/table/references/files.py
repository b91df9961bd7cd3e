"""Files of tags and branches: JSON, checked as hostile input."""

from __future__ import annotations

import datetime as dt
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from lance_dataset.errors import CorruptFileError
from lance_dataset.table.references.names import MAIN_BRANCH, check_branch_name

__all__ = ["MAX_FILE_SIZE", "Branch", "Tag", "decode_branch", "decode_tag", "encode_branch", "encode_tag"]

#: Larger files are not read, because they cannot be references.
MAX_FILE_SIZE = 1 << 20
_MAX_NUMBER = 2**64 - 1
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_NAMESPACE = uuid.UUID("5a1c5f6e-7d0c-4a56-9c0b-8b7f0d0a4c1e")


@dataclass(frozen=True)
class Tag:
    """A named version.

    Attributes
    ----------
    name
        The name.
    branch
        Branch of the version, None for the main one.
    version
        The version.
    manifest_size
        Size of its manifest in bytes.
    created_at, updated_at
        Times in UTC. None if an old release did not record them.
    metadata
        Custom metadata.
    """

    name: str
    branch: str | None
    version: int
    manifest_size: int
    created_at: dt.datetime | None = None
    updated_at: dt.datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Branch:
    """A line of versions that began as a copy of another version.

    Attributes
    ----------
    name
        The name.
    parent_branch
        Branch that it began from, None for the main one.
    parent_version
        Version of that branch.
    created_at
        Seconds since the epoch.
    manifest_size
        Size in bytes of the manifest that it began from.
    identifier
        Path from the main branch to this one: for each branch, the version that it began from and a unique id.
    identifier_is_known
        True if the file contains the identifier. Files of old releases do not, and then it is derived from the rest.
    metadata
        Custom metadata.
    """

    name: str
    parent_branch: str | None
    parent_version: int
    created_at: int
    manifest_size: int
    identifier: tuple[tuple[int, str], ...]
    identifier_is_known: bool = True
    metadata: Mapping[str, str] = field(default_factory=dict)


def encode_tag(tag: Tag) -> bytes:
    """Encode the file of a tag."""
    return _dump(
        {
            "branch": tag.branch,
            "version": tag.version,
            "createdAt": _time_text(tag.created_at),
            "updatedAt": _time_text(tag.updated_at),
            "manifestSize": tag.manifest_size,
            "metadata": dict(tag.metadata),
        }
    )


def decode_tag(data: bytes, name: str, where: str) -> Tag:
    """Decode the file of a tag.

    Parameters
    ----------
    data
        The whole file.
    name
        Name of the tag.
    where
        Name of the file, for error messages.

    Raises
    ------
    CorruptFileError
        The file is not JSON, lacks a member, or has an invalid value.
    """
    values = _Values(data, where)
    return Tag(
        name=name,
        branch=values.branch("branch"),
        version=values.number("version"),
        manifest_size=values.number("manifestSize"),
        created_at=values.time("createdAt"),
        updated_at=values.time("updatedAt"),
        metadata=values.texts("metadata"),
    )


def encode_branch(branch: Branch) -> bytes:
    """Encode the file of a branch."""
    return _dump(
        {
            "parentBranch": branch.parent_branch,
            "identifier": {"version_mapping": [list(step) for step in branch.identifier]},
            "parentVersion": branch.parent_version,
            "createAt": branch.created_at,
            "manifestSize": branch.manifest_size,
            "metadata": dict(branch.metadata),
        }
    )


def decode_branch(data: bytes, name: str, where: str) -> Branch:
    """Decode the file of a branch. Parameters and errors are those of `decode_tag`."""
    values = _Values(data, where)
    parent_version, created_at = values.number("parentVersion"), values.number("createAt")
    identifier = values.identifier("identifier")
    if identifier is None:
        made_up = uuid.uuid5(_NAMESPACE, f"{name} {parent_version} {created_at}").hex
    return Branch(
        name=name,
        parent_branch=values.branch("parentBranch"),
        parent_version=parent_version,
        created_at=created_at,
        manifest_size=values.number("manifestSize"),
        identifier=identifier if identifier is not None else ((0, made_up),),
        identifier_is_known=identifier is not None,
        metadata=values.texts("metadata"),
    )


class _Values:
    """Members of a JSON object, each checked when it is read."""

    def __init__(self, data: bytes, where: str) -> None:
        self._where = where
        if len(data) > MAX_FILE_SIZE:
            self._fail(f"has {len(data)} bytes, which is too large for a reference")
        try:
            found = json.loads(data.decode())
        except (ValueError, RecursionError) as error:
            raise CorruptFileError(f"{where}: is not JSON: {error}") from error
        if not isinstance(found, dict):
            self._fail(f"contains a JSON {type(found).__name__} instead of an object")
        self._found: dict[str, Any] = found

    def _fail(self, problem: str) -> NoReturn:
        raise CorruptFileError(f"{self._where}: {problem}; delete the file, or rewrite it with another program")

    def number(self, key: str) -> int:
        """Return a number, which must be present."""
        if key not in self._found:
            self._fail(f"lacks {key!r}")
        return self._number(self._found[key], key)

    def _number(self, value: object, key: str) -> int:
        if type(value) is not int or not 0 <= value <= _MAX_NUMBER:
            self._fail(f"{key!r} is {_short(value)} instead of a whole number from 0 to 2**64 - 1")
        return value

    def branch(self, key: str) -> str | None:
        """Return the name of a branch, None for the main one."""
        value = self._found.get(key)
        if value is None or value == MAIN_BRANCH:
            return None
        try:
            return check_branch_name(value)
        except (TypeError, ValueError) as error:
            self._fail(f"{key!r} is {_short(value)}, which cannot be a branch: {error}")

    def time(self, key: str) -> dt.datetime | None:
        """Return a time, truncated to microseconds."""
        value = self._found.get(key)
        if value is None:
            return None
        try:
            return _parsed_time(value)
        except (TypeError, ValueError, OverflowError):
            self._fail(f"{key!r} is {_short(value)} instead of a time such as '2026-01-31T12:00:00Z'")

    def texts(self, key: str) -> dict[str, str]:
        """Return a mapping of strings to strings."""
        value = self._found.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            self._fail(f"{key!r} is {_short(value)} instead of an object of strings")
        return value

    def identifier(self, key: str) -> tuple[tuple[int, str], ...] | None:
        """Return the path to a branch, None if the file does not contain it."""
        value = self._found.get(key)
        if value is None:
            return None
        steps = value.get("version_mapping") if isinstance(value, dict) else None
        if not isinstance(steps, list):
            self._fail(f"{key!r} is {_short(value)} instead of an object with the list 'version_mapping'")
        for step in steps:
            if not (isinstance(step, list) and len(step) == 2 and isinstance(step[1], str)):
                self._fail(f"{key!r} has the entry {_short(step)} instead of a version and an id")
        return tuple((self._number(step[0], key), step[1]) for step in steps)


def _dump(content: Mapping[str, object]) -> bytes:
    return json.dumps(content, indent=2, ensure_ascii=False).encode()


def _parsed_time(text: str) -> dt.datetime:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError
    date, time, fraction, zone = match.groups()
    micros = ((fraction or "") + "000000")[:6]
    whole = f"{date}T{time}.{micros}{'+00:00' if zone in 'Zz' else zone}"
    return dt.datetime.fromisoformat(whole).astimezone(dt.timezone.utc)


def _time_text(time: dt.datetime | None) -> str | None:
    if time is None:
        return None
    return time.astimezone(dt.timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
