"""Tests that the program for type checkers uses everything that is public, and runs."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from support.api import public_names

from lance_dataset import events
from lance_dataset.api import tracing

PROGRAM = Path(__file__).with_name("public_face.py")

_INTERNAL = "for other rooms of the package"
_REFUSED = "raises UnsupportedError, and its type says that it never returns"
_SEARCH = "refused until searches come with a later release"
_DEPRECATED = "deprecated"
_TORCH = "needs torch.distributed; in a function that does not run"
_ABSTRACT = "abstract"

_NETWORK = "needs a network"

#: Methods that the program does not run, and why.
NOT_RUN: dict[str, str] = {
    "Configured.replace_field_metadata": _DEPRECATED,
    "Configured.replace_schema_metadata": _DEPRECATED,
    "FixedSizeListMixin.dim": _ABSTRACT,
    "FixedSizeListMixin.nullable": "the classes that `Vector` and `MultiVector` return have their own",
    "FixedSizeListMixin.value_arrow_type": _ABSTRACT,
    "FragmentMetadata.data_files": _DEPRECATED,
    "FragmentSampler.iter_fragments": _ABSTRACT,
    "FragmentWriteProgress.begin": _ABSTRACT,
    "FragmentWriteProgress.complete": _ABSTRACT,
    "FullTextQuery.query_type": _ABSTRACT,
    "Sampler.__call__": _ABSTRACT,
    "_Scannable.scanner": _ABSTRACT,
    "LanceScanner.from_batches": _REFUSED,
    "download_jieba": _NETWORK,
    "download_lindera": _NETWORK,
    "main": _NETWORK,
    "LanceScanner.from_dataset": _REFUSED,
    "LanceScanner.from_fragment": _REFUSED,
    "LanceScanner.scan_batches": _REFUSED,
    "LanceScanner.take": _REFUSED,
    "ScannableDataset.filter": _REFUSED,
    "ScannableDataset.join": _REFUSED,
    "ScannableDataset.join_asof": _REFUSED,
    "ScannableDataset.partition_expression": _REFUSED,
    "ScannableDataset.replace_schema": _REFUSED,
    "ScannableDataset.sort_by": _REFUSED,
    "ScannableFragment.partition_expression": _REFUSED,
    "ScannerBuilder.substrait_aggregate": _SEARCH,
    "SchemaEvolution.replace_schema": _REFUSED,
    "MaintenanceRunner.compact": "abstract",
    "MaintenanceRunner.refresh_indices": "abstract",
    "ShardedBatchIterator.from_torch": _TORCH,
    "_Sharded.for_worker": _TORCH,
    "ShardedBatchSampler.from_torch": _TORCH,
    "ShardedFixedBatchSampler.from_torch": _TORCH,
    "ShardedFragmentSampler.from_torch": _TORCH,
}


def words() -> set[str]:
    """Return names, attributes, keywords and texts of the program."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(PROGRAM.read_text())):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name)
        elif isinstance(node, ast.keyword) and node.arg is not None:
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> set[CodeType]:
    """Run the program once, and return the code that ran."""
    spec = importlib.util.spec_from_file_location("public_face_program", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        program.main(tmp_path_factory.mktemp("face"))
    finally:
        sys.setprofile(before)
        # A process has one callback and one trace, which other tests in it want, too.
        if tracing._chrome is not None:
            tracing._chrome.end()
        if tracing._callback is not None:
            tracing._callback.end()
        events._listeners, tracing._chrome, tracing._callback = (), None, None
    return called


def test_every_method_and_function_runs(run: set[CodeType]) -> None:
    functions = {method.label: method.function for method in public_names.methods()} | public_names.functions()
    missing = {label for label, function in functions.items() if function.__code__ not in run}
    assert missing == set(NOT_RUN), "keep the list up to date"


def test_every_name_and_field_occurs() -> None:
    wanted = {name: name for name in public_names.names()}
    for owner, kind in public_names.classes().items():
        wanted |= {f"{owner}.{name}": name for name in vars(kind).get("__annotations__", {}) if name[0] != "_"}
        wanted[owner] = kind.__name__
    found = words()
    missing = {label for label, name in wanted.items() if name not in found}
    assert missing == set()
