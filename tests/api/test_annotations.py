"""Tests that every public callable has type annotations and a docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from support.api import public_names

CALLABLES: dict[str, Callable[..., Any]] = {
    method.label: method.function for method in public_names.methods()
} | public_names.functions()

#: Callables annotated with `Any`, and why.
ANY: dict[str, str] = {
    "FragmentMetadata.to_json": "JSON",
    "HuggingFaceConverter.__init__": "JSON",
    "IndexConfig.__init__": "JSON",
    "IndexDescription.__init__": "JSON",
    "Indexed.index_statistics": "JSON",
    "LanceStats.index_stats": "JSON",
    "Logged.mem_wal_index_details": "JSON",
    "MaintenanceReport.to_dict": "JSON",
    "RepairReport.to_dict": "JSON",
    "RowDatasetVersionMeta.asdict": "JSON",
    "RowIdMeta.asdict": "JSON",
    "get_extras": "JSON",
    "import_requests": "a module that may not be installed",
    "json_to_schema": "JSON",
    "schema_to_json": "JSON",
    "SqlQuery.__init__": "made by the package only: options of a scan, checked one by one",
    "compute_partitions": "models of PyTorch, which may not be installed",
    "compute_pq_codes": "models of PyTorch, which may not be installed",
    "one_pass_assign_ivf_pq_on_accelerator": "models of PyTorch, which may not be installed",
    "one_pass_train_ivf_pq_on_accelerator": "models of PyTorch, which may not be installed",
    "train_ivf_centroids_on_accelerator": "models of PyTorch, which may not be installed",
    "train_pq_codebook_on_accelerator": "models of PyTorch, which may not be installed",
}


def signature(function: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(function).parameters.values()
    return [each for each in found if each.name not in ("self", "cls")]


def texts(function: Callable[..., Any]) -> list[str]:
    """Return the annotations as texts, without those of ``*args`` and ``**kwargs``, which are passed on."""
    handed_on = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = [each.annotation for each in signature(function) if each.kind not in handed_on]
    return [str(each) for each in (*found, inspect.signature(function).return_annotation)]


def test_all_are_found() -> None:
    assert {"LanceDataset.uri", "Reading.to_table", "EncodingReport.columns", "write_dataset"} <= set(CALLABLES)
    assert len(CALLABLES) > 400


@pytest.mark.parametrize("label", CALLABLES)
def test_annotations(label: str) -> None:
    function = CALLABLES[label]
    empty = inspect.Parameter.empty
    assert [each.name for each in signature(function) if each.annotation is empty] == []
    assert inspect.signature(function).return_annotation is not empty
    assert not any("Callable[..." in text for text in texts(function))
    assert any("Any" in text.replace("NDArray[Any]", "") for text in texts(function)) == (label in ANY)


@pytest.mark.parametrize("label", CALLABLES)
def test_signatures_are_written_down(label: str) -> None:
    function = CALLABLES[label]
    assert not hasattr(function, "__signature__")
    assert not hasattr(function, "__wrapped__")
    assert "locals" not in function.__code__.co_names


def test_docstrings() -> None:
    undocumented = [
        label for label, function in CALLABLES.items() if not function.__doc__ and not label.endswith(".__init__")
    ]
    undocumented += [name for name, kind in public_names.classes().items() if not kind.__doc__]
    undocumented += [name for name, module in public_names.modules().items() if not module.__doc__]
    assert undocumented == []
