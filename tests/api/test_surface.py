"""Tests that every name of the reference's classes exists here, or is listed as missing with the reason."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.debug
import lance.fragment
import lance.log
import lance.sampler
import pyarrow as pa
import pytest
from lance.dataset import DatasetDelta, LanceScanner, ScannerBuilder, SqlQuery, SqlQueryBuilder

import lance_dataset
import lance_dataset.api.delta
import lance_dataset.api.scanner
import lance_dataset.api.sql
import lance_dataset.debug
import lance_dataset.fragment
import lance_dataset.log
import lance_dataset.sampler

#: Missing names, and why. A name that exists here, or that the reference lacks, must not be on the list.
MISSING: dict[str, dict[str, str]] = {
    "DataFile": {
        "path": "",  # a dataclass field, which only instances have
    },
    "sampler": {},
}

PAIRS: dict[str, tuple[Any, Any]] = {
    "LanceDataset": (lance.LanceDataset, lance_dataset.LanceDataset),
    "LanceFragment": (lance.LanceFragment, lance_dataset.LanceFragment),
    "FragmentMetadata": (lance.FragmentMetadata, lance_dataset.FragmentMetadata),
    "FragmentSession": (lance.fragment.FragmentSession, lance_dataset.fragment.FragmentSession),
    "DataFile": (lance.fragment.DataFile, lance_dataset.fragment.DataFile),
    "DatasetDelta": (DatasetDelta, lance_dataset.api.delta.DatasetDelta),
    "LanceScanner": (LanceScanner, lance_dataset.LanceScanner),
    "MergeInsertBuilder": (lance.MergeInsertBuilder, lance_dataset.MergeInsertBuilder),
    "ScannerBuilder": (ScannerBuilder, lance_dataset.ScannerBuilder),
    "Session": (lance.Session, lance_dataset.Session),
    "SqlQuery": (SqlQuery, lance_dataset.api.sql.SqlQuery),
    "SqlQueryBuilder": (SqlQueryBuilder, lance_dataset.api.sql.SqlQueryBuilder),
    "debug": (lance.debug, lance_dataset.debug),
}
for _name in lance.sampler.__all__:
    PAIRS[f"sampler.{_name}"] = (getattr(lance.sampler, _name), getattr(lance_dataset.sampler, _name))


def names(owner: Any) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_") and not inspect.ismodule(getattr(owner, name))]


@pytest.mark.parametrize("kind", PAIRS)
def test_nothing_is_missing_unnoticed(kind: str) -> None:
    theirs, ours = PAIRS[kind]
    known = MISSING.get(kind, {})
    missing = {name for name in names(theirs) if not hasattr(ours, name)}
    assert missing == set(known), "keep the list up to date"


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(function).parameters.values()
    return [each for each in found if each.name not in ("self", "cls")]


#: Calls with other parameters than the reference's, and why. Additional parameters do not count.
DIFFERENT: dict[str, str] = {
    "LanceScanner.__init__": "made by the package only",
    "FragmentSession.__init__": "made by the package only",
    "SqlQuery.__init__": "made by the package only",
    "SqlQueryBuilder.__init__": "made by the package only",
    "MergeInsertBuilder.__init__": "made by the package only",
    "LanceDataset.__init__": "lance_dataset.dataset takes what is missing",
    "DatasetDelta.__init__": "made by the package only",
    "LanceDataset.to_pandas": "takes what to_table takes; options after batch_size are meant to be given by name",
    "LanceFragment.to_pandas": "takes what to_table takes; options after offset are meant to be given by name",
}


def comparable(kind: str) -> list[str]:
    theirs, ours = PAIRS[kind]
    if inspect.isfunction(theirs):
        return [""]
    found = [name for name in names(theirs) if callable(getattr(theirs, name)) and hasattr(ours, name)]
    if inspect.isclass(theirs):
        found.append("__init__")
    return [name for name in found if f"{kind}.{name}" not in DIFFERENT]


@pytest.mark.parametrize("kind", PAIRS)
def test_calls_of_the_reference_are_accepted(kind: str) -> None:
    """Every parameter of the reference exists with its name, and at its position unless it is keyword-only."""
    theirs, ours = PAIRS[kind]
    wrong = []
    for name in comparable(kind):
        try:
            asked = parameters(getattr(theirs, name) if name else theirs)
        except ValueError:  # a compiled callable without a signature
            continue
        offered = parameters(getattr(ours, name) if name else ours)
        positional = [each.name for each in offered if each.kind is not each.KEYWORD_ONLY]
        by_name = {each.name: each for each in offered}
        takes_any = any(each.kind is each.VAR_KEYWORD for each in offered)
        for place, parameter in enumerate(asked):
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                fits = place < len(positional)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                fits = parameter.name in by_name or takes_any
            else:
                fits = positional[place : place + 1] == [parameter.name]
            mine = by_name.get(parameter.name)
            if not fits or (
                mine is not None and parameter.default is not parameter.empty and mine.default is mine.empty
            ):
                wrong.append(f"{kind}.{name}({parameter})")
    assert wrong == []


def test_the_calls_to_open() -> None:
    for name in ("dataset", "write_dataset", "write_fragments", "set_logger"):
        asked = [each.name for each in parameters(getattr(lance, name, None) or getattr(lance.fragment, name))]
        assert [each.name for each in parameters(getattr(lance_dataset, name))][: len(asked)] == asked


def test_submodules() -> None:
    for name in ("debug", "fragment", "log", "sampler", "udf"):
        assert getattr(lance_dataset, name) is sys.modules[f"lance_dataset.{name}"]


def test_row_addresses_are_serialised_where_the_reference_does() -> None:
    module = sys.modules["lance_dataset.dataset"]
    assert module.serialize_row_addrs is lance_dataset.scan.resolving.serialize_row_addrs


def test_a_table_provider_is_refused(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"a": [1]}), tmp_path / "data")
    with pytest.raises(lance_dataset.errors.UnsupportedError, match=r"use dataset\.sql"):
        lance_dataset.FFILanceTableProvider(dataset, with_row_id=True)
