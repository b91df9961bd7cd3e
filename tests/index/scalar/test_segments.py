"""Segments of scalar indices that are built apart, merged and published: as in the reference, and used by it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset import LanceDataset, LanceOperation

_FILTERS = ("k = 17", "k < 40", "b = 2", "array_has_any(l, [1, 5])", "k = 250 OR b = 1")
_KINDS = (("k", "BTREE"), ("b", "BITMAP"), ("l", "LABEL_LIST"))


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use indices wherever they answer, and compare each answer with the scan."""
    monkeypatch.setenv("LANCE_CHECK_INDICES", "1")


def _dataset(path: Path, **options: Any) -> LanceDataset:
    numbers = np.arange(400)
    table = pa.table({"k": numbers, "b": numbers % 4, "l": [[n % 9, n % 7] for n in numbers.tolist()]})
    return lance_dataset.write_dataset(table, path, max_rows_per_file=100, **options)


def _check(path: Path) -> None:
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for each in _FILTERS:
        expected = ours.scanner(filter=each, use_scalar_index=False).count_rows()
        assert ours.count_rows(each) == theirs.count_rows(each) == expected, each


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("column", "kind"), _KINDS)
def test_workers_build_segments(tmp_path: Path, column: str, kind: str, stable: bool) -> None:
    dataset = _dataset(tmp_path, enable_stable_row_ids=stable)
    version = dataset.version
    parts = [
        pickle.loads(pickle.dumps(dataset.create_index_uncommitted(column, kind, name="x", fragment_ids=ids)))
        for ids in ([0, 1], [2])
    ]
    assert dataset.version == lance_dataset.dataset(tmp_path).version == version
    assert dataset.commit_existing_index_segments("x", column, parts) is dataset
    assert dataset.describe_indices()[0].num_rows_indexed == 300
    _check(tmp_path)
    last = dataset.create_index_uncommitted(column, kind, name="x", fragment_ids=[3], replace=True)
    dataset.commit_existing_index_segments("x", column, [last])
    assert sorted(sorted(each.fragment_ids) for each in dataset.describe_indices()[0].segments) == [[0, 1], [2], [3]]
    _check(tmp_path)
    whole = dataset.merge_existing_index_segments([*parts, last])
    dataset.commit_existing_index_segments("x", column, [whole])
    assert [each.fragment_ids for each in dataset.describe_indices()[0].segments] == [{0, 1, 2, 3}]
    _check(tmp_path)


def test_segments_of_the_reference(tmp_path: Path) -> None:
    _dataset(tmp_path)
    theirs = lance.dataset(tmp_path)
    made = [theirs.create_index_uncommitted("k", "BTREE", name="x", fragment_ids=[each]) for each in range(4)]
    records = [
        lance_dataset.Index(
            *(each.uuid, each.name, each.fields, each.dataset_version, set(each.fragment_ids), each.index_version),
            index_details=each.index_details,
        )
        for each in made
    ]
    dataset = lance_dataset.dataset(tmp_path)
    dataset.commit_existing_index_segments("x", "k", records)
    _check(tmp_path)
    dataset.prewarm_index("x")
    whole = dataset.merge_existing_index_segments(records[:3])
    dataset.commit_existing_index_segments("x", "k", [whole])
    _check(tmp_path)


def test_bad_input(tmp_path: Path) -> None:
    dataset = _dataset(tmp_path)
    build = dataset.create_index_uncommitted
    for options, error in (
        ({}, ValueError),
        ({"fragment_ids": []}, ValueError),
        ({"fragment_ids": [9]}, ValueError),
        ({"fragment_ids": [0], "index_uuid": "x"}, ValueError),
    ):
        with pytest.raises(error):
            build("k", "BTREE", **options)
    with pytest.raises(TypeError):
        build("k", "IVF_HNSW_FLAT", fragment_ids=[0])
    with pytest.raises(KeyError):
        build("none", "BTREE", fragment_ids=[0])
    assert not list(tmp_path.glob("_indices/*"))
    one, two = build("k", "BTREE", fragment_ids=[0, 1]), build("k", "BTREE", fragment_ids=[1, 2])
    other = build("b", "BITMAP", fragment_ids=[3])
    for segments in ([], [one, two], [other], [one, other]):
        with pytest.raises(ValueError):
            dataset.commit_existing_index_segments("x", "k", segments)
    with pytest.raises(ValueError):
        dataset.merge_existing_index_segments([one, other])
    dataset.commit_existing_index_segments("x", "k", [one])
    with pytest.raises(ValueError, match="orphan"):
        dataset.commit_existing_index_segments("x", "k", [two])
    with pytest.raises(RuntimeError):
        build("k", "BTREE", name="x", fragment_ids=[3])
    bitmap = build("k", "BITMAP", fragment_ids=[3])
    with pytest.raises(ValueError, match="another kind"):
        dataset.commit_existing_index_segments("x", "k", [bitmap])
    with pytest.raises(RuntimeError):
        dataset.prewarm_index("nothing")


def test_segments_of_rewritten_columns_are_refused(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"k": np.arange(200)}), tmp_path, max_rows_per_file=100)
    segment = dataset.create_index_uncommitted("k", "BTREE", fragment_ids=[0, 1], index_uuid=str(uuid4()))
    file = tmp_path / "data" / "new.lance"
    with lance.file.LanceFileWriter(str(file), pa.schema({"k": pa.int64()})) as writer:
        writer.write_batch(pa.table({"k": np.arange(1000, 1100)}))
    shown = dataset.get_fragment(1).metadata.files[0]
    replacement = lance_dataset.fragment.DataFile(
        "new.lance", [0], [0], shown.file_major_version, shown.file_minor_version
    )
    operation = LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(1, replacement)])
    lance_dataset.LanceDataset.commit(tmp_path, operation, read_version=dataset.version)
    dataset = lance_dataset.dataset(tmp_path)
    with pytest.raises(ValueError, match="rewritten in fragment 1"):
        dataset.commit_existing_index_segments("x", "k", [segment])


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("column", "kind"), _KINDS)
def test_workers_extend_an_index(tmp_path: Path, column: str, kind: str, stable: bool) -> None:
    dataset = _dataset(tmp_path, enable_stable_row_ids=stable)
    first = dataset.create_index_uncommitted(column, kind, name="x", fragment_ids=[0, 1])
    dataset.commit_existing_index_segments("x", column, [first])
    part = pickle.loads(pickle.dumps(dataset.extend_index_uncommitted("x", [2])))
    dataset.delete("k = 217")
    dataset.commit_existing_index_segments("x", column, [part, dataset.extend_index_uncommitted("x", [3])])
    assert sorted(sorted(each.fragment_ids) for each in dataset.describe_indices()[0].segments) == [[0, 1], [2], [3]]
    _check(tmp_path)


def test_an_extension_keeps_the_parameters_of_the_index(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"t": ["Running dogs"] * 20}), tmp_path, max_rows_per_file=10)
    parameters = {"stem": False, "lower_case": False, "with_position": True}
    first = dataset.create_index_uncommitted("t", "INVERTED", name="words", fragment_ids=[0], **parameters)
    dataset.commit_existing_index_segments("words", "t", [first])
    dataset.commit_existing_index_segments("words", "t", [dataset.extend_index_uncommitted("words", [1])])
    for opened in (lance_dataset.dataset(tmp_path), lance.dataset(tmp_path)):
        found = [opened.to_table(full_text_query=word).num_rows for word in ("Running", "running", "run")]
        assert found == [20, 0, 0]


@pytest.mark.parametrize(
    ("name", "fragments", "message"),
    [
        ("nothing", [1], "has no index 'nothing'"),
        ("x", [1, 0], "covers fragment 0 already"),
        ("x", [7], "fragment 7 is not part of version"),
        ("x", [], "must name the fragments"),
    ],
)
def test_wrong_extensions(tmp_path: Path, name: str, fragments: list[int], message: str) -> None:
    dataset = _dataset(tmp_path)
    first = dataset.create_index_uncommitted("k", "BTREE", name="x", fragment_ids=[0])
    dataset.commit_existing_index_segments("x", "k", [first])
    folders = sorted(Path(tmp_path, "_indices").iterdir())
    with pytest.raises(ValueError, match=message):
        dataset.extend_index_uncommitted(name, fragments)
    assert sorted(Path(tmp_path, "_indices").iterdir()) == folders
