"""Tests of full-text indices that several workers build as one, together with those of pylance."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import InvalidInputError

MODULES = {"ours": lance_dataset, "pylance": lance}


def table() -> pa.Table:
    texts = [None if n % 11 == 0 else f"apple w{n % 7} pear{n % 3}" + " plum" * (n % 4) for n in range(300)]
    return pa.table({"n": range(300), "t": texts})


def publish(path: Path, made: str, fragments: list[int]) -> None:
    """Commit an index whose files exist, without its kind, as programs of users do."""
    dataset = lance.dataset(str(path))
    field = dataset.lance_schema.fields()[1].id()
    index = lance.Index(made, "t_idx", [field], dataset.version, set(fragments), 0)  # type: ignore[arg-type]
    operation = lance.LanceOperation.CreateIndex([index], [])
    lance.LanceDataset.commit(str(path), operation, read_version=dataset.version)


def found(dataset: Any, words: str) -> dict[int, float]:
    rows = dataset.to_table(columns=["n", "_score"], full_text_query=words)
    return dict(zip(rows["n"].to_pylist(), rows["_score"].to_pylist(), strict=True))


@pytest.mark.parametrize("merging", MODULES)
@pytest.mark.parametrize("staging", [("ours", "ours", "ours"), ("pylance", "ours", "pylance")], ids="-".join)
def test_parts(staging: tuple[str, ...], merging: str, tmp_path: Path) -> None:
    """Parts of either package become an index by either, whose scores are those of an index that is built at once."""
    path, whole = tmp_path / "parts", tmp_path / "whole"
    for where in (path, whole):
        lance_dataset.write_dataset(table(), where, max_rows_per_file=100)
    made = str(uuid.uuid4())
    for fragment, name in enumerate(staging):
        dataset = MODULES[name].dataset(str(path))
        assert (
            dataset.create_scalar_index(
                "t", "INVERTED", name="t_idx", fragment_ids=[fragment], index_uuid=made, with_position=True
            )
            is None
        )
    MODULES[merging].dataset(str(path)).merge_index_metadata(made, "INVERTED")
    names = sorted(each.name for each in (path / "_indices" / made).iterdir())
    assert "metadata.lance" in names
    assert not list((path / "_indices" / made).glob("staging/*"))
    publish(path, made, [0, 1, 2])
    lance_dataset.dataset(whole).create_scalar_index("t", "INVERTED", with_position=True)
    for words in ("apple", "w3 pear1", "plum w5"):
        expected = found(lance_dataset.dataset(whole), words)
        for module in MODULES.values():
            assert found(module.dataset(str(path)), words) == pytest.approx(expected, rel=1e-6)


def test_refused(tmp_path: Path) -> None:
    """Parts with other parameters, without fragments or of other kinds raise an error."""
    dataset = lance_dataset.write_dataset(table(), tmp_path, max_rows_per_file=100)
    made = str(uuid.uuid4())
    with pytest.raises(InvalidInputError, match="no worker"):
        dataset.merge_index_metadata(made, "INVERTED")
    dataset.create_scalar_index("t", "INVERTED", fragment_ids=[0], index_uuid=made)
    dataset.create_scalar_index("t", "INVERTED", fragment_ids=[1], index_uuid=made, stem=False)
    with pytest.raises(InvalidInputError, match="differ"):
        dataset.merge_index_metadata(made, "INVERTED")
    with pytest.raises(InvalidInputError, match="fragment 9 is not part"):
        dataset.create_scalar_index("t", "INVERTED", fragment_ids=[9], index_uuid=made)
    with pytest.raises(InvalidInputError, match="there are none"):
        dataset.create_scalar_index("t", "INVERTED", fragment_ids=[], index_uuid=made)
    with pytest.raises(InvalidInputError, match="UUID"):
        dataset.create_scalar_index("t", "INVERTED", fragment_ids=[0], index_uuid="x")
    with pytest.raises(InvalidInputError, match="create_index_uncommitted"):
        dataset.create_scalar_index("n", "BTREE", fragment_ids=[0], index_uuid=made)
    for part in ({"index_uuid": made}, {"fragment_ids": [0]}):
        with pytest.raises(InvalidInputError, match="need fragment_ids and index_uuid"):
            dataset.create_scalar_index("t", "INVERTED", **part)
    assert dataset.version == 1


def test_repeated_part(tmp_path: Path) -> None:
    """A worker that is repeated replaces its part, also if it wrote more partitions before."""
    dataset = lance_dataset.write_dataset(table(), tmp_path, max_rows_per_file=100)
    made = str(uuid.uuid4())
    staging = tmp_path / "_indices" / made / "staging"
    for fragment in (0, 1):
        dataset.create_scalar_index("t", "INVERTED", fragment_ids=[fragment], index_uuid=made)
    for kind in ("docs", "invert", "tokens", "metadata"):
        (staging / f"part_{(1 << 32) + 1}_{kind}.lance").write_bytes(b"left by a worker that failed")
    dataset.create_scalar_index("t", "INVERTED", fragment_ids=[1], index_uuid=made)
    dataset.merge_index_metadata(made, "INVERTED")
    assert sum(each.name.endswith("_docs.lance") for each in (tmp_path / "_indices" / made).iterdir()) == 2
