"""Runs of calls on both libraries, and what is compared of them."""

from __future__ import annotations

import datetime as dt
import re
import shutil
import uuid
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import numpy as np

import lance_dataset
from support.calls.texts import Group
from support.calls.worlds import World, tables_of
from support.reference.outcomes import Outcome, plain

#: Attributes that differ from run to run, or that only one library has.
_VARYING = {
    "uuid",
    "uri",
    "path",
    "timestamp",
    "created_at",
    "updated_at",
    "create_at",
    "bytes_removed",
    "size_bytes",
    "id",
    "total_size",
    "files",
}
_FRACTION = re.compile(r"-?\d+\.\d{4,}(e[-+]?\d+)?")
_HEX = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}|[01]{24}[0-9a-f]{26}")


def simple(value: Any, scratch: str, depth: int = 0) -> Any:
    """Return a value as built-in objects: objects of the libraries by their public attributes, without names."""
    if isinstance(value, str):
        return _HEX.sub("UUID", value.replace(scratch, "TMP"))
    if isinstance(value, bytes | int | complex | dt.date | dt.timedelta | type(None) | Enum | uuid.UUID | type):
        return repr(value)
    if isinstance(value, Mapping):
        return {
            simple(key, scratch): simple(item, scratch, depth + 1) for key, item in value.items() if key not in _VARYING
        }
    if isinstance(value, list | tuple | Iterator):
        return [simple(item, scratch, depth + 1) for item in value]
    if isinstance(value, set | frozenset) or type(value).__name__ == "Bitmap":
        return [repr(each) for each in sorted(value)]
    if isinstance(value, float):
        return _rounded(repr(value))
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tolist()
    module = type(value).__module__.split(".")[0]
    if module in ("lance", "lance_dataset", "lancecodec", "builtins", "pylance") and not isinstance(value, ModuleType):
        if isinstance(value, lance.LanceDataset | lance_dataset.LanceDataset):
            return "dataset", value.version, value.count_rows(), value.schema.names
        if callable(value) or depth > 4:
            return "object"
        names = [name for name in dir(value) if name[0] != "_" and name not in _VARYING]
        found = {name: _attribute(value, name) for name in names}
        return {name: simple(item, scratch, depth + 1) for name, item in found.items() if not callable(item)}
    return plain(value)


def _rounded(text: str) -> str:
    """Return a text with fractions of five digits: sums of vectors end in other digits."""
    return _FRACTION.sub(lambda match: f"{float(match[0]):.5g}", text)


def _sorted(value: Any) -> Any:
    """Return a value with the items of mappings in the order of their keys: metadata have none."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value, key=repr)}
    return type(value)(map(_sorted, value)) if isinstance(value, list | tuple) else value


def _attribute(value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except Exception:
        return "error"


def _run(text: str, names: dict[str, Any], changes: bool) -> Outcome:
    def call(_: Any, __: Any) -> Any:
        value = simple(eval(text, names), names["tmp"])
        return _rounded(repr(_sorted(value)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = Outcome.of(call, None, None)
    if changes:
        return Outcome((outcome.value, _state(Path(names["tmp"]))), outcome.error)
    return outcome


def _state(scratch: Path) -> Any:
    """Return the contents of all tables, as the reference reads them; rows in the order of their numbers."""
    states = []
    for path in tables_of(scratch):
        dataset = lance.dataset(path)
        try:
            table = dataset.to_table()
        except Exception as error:
            states.append((path.name, dataset.version, type(error).__name__))
            continue
        rows = sorted(map(repr, table.to_pylist()))
        states.append((path.name, dataset.version, len(dataset.get_fragments()), repr(plain(table.schema)), rows))
        assert repr(plain(lance_dataset.dataset(path).to_table())) == repr(plain(table))
    return states


@dataclass(frozen=True)
class Difference:
    """Difference between the outcomes of a call.

    Parameters
    ----------
    kind
        ``accepted`` if only the reference raises an error, ``refused`` if only this package does, ``errors`` if the
        errors are of different kinds, and ``results``.
    call, ours, theirs
        The call and its outcomes, or what is different in them.
    whole
        The whole outcomes.
    """

    kind: str
    call: str
    ours: str
    theirs: str
    whole: tuple[str, str] = field(default=("", ""), repr=False)


def compared(world: World, group: Group, text: str) -> Difference | None:
    """Run a call on both libraries and return what differs."""
    outcomes = []
    for library in (lance_dataset, lance):
        names = world.fresh(library, group.table) if group.changes else world.shared(library, group.table)
        outcomes.append(_run(text, names, group.changes))
        if group.changes:
            shutil.rmtree(names["tmp"])
    ours, theirs = outcomes
    if ours.error is None and theirs.error is None:
        return None if ours.value == theirs.value else _apart("results", text, ours, theirs)
    if ours.error is None:
        return _apart("accepted", text, ours, theirs)
    if theirs.error is None:
        return _apart("refused", text, ours, theirs)
    if not _same_kind(ours.error, theirs.error):
        return _apart("errors", text, ours, theirs)
    if group.changes and ours.value[1] != theirs.value[1]:
        return _apart("left", text, Outcome(ours.value[1]), Outcome(theirs.value[1]))
    return None


def _same_kind(ours: BaseException, theirs: BaseException) -> bool:
    """Return whether what handles the error of the reference handles ours; built-in errors stand for those of Arrow."""
    if type(theirs).__name__ == "PanicException":
        return isinstance(ours, Exception)
    kind = next(base for base in type(theirs).__mro__ if base.__module__ == "builtins")
    return isinstance(ours, kind)


def _apart(kind: str, text: str, ours: Outcome, theirs: Outcome) -> Difference:
    whole = (_told(ours), _told(theirs))
    told = list(whole)
    if kind in ("results", "left"):
        start = next((i for i, (a, b) in enumerate(zip(*told, strict=False)) if a != b), min(map(len, told)))
        told = [each[max(0, start - 60) : start + 140] for each in told]
    return Difference(kind, text, told[0][:400], told[1][:400], whole)


def _told(outcome: Outcome) -> str:
    if outcome.error is not None:
        return f"{type(outcome.error).__name__}: {outcome.error}"
    return outcome.value if isinstance(outcome.value, str) else repr(outcome.value)
