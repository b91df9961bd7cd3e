"""Tests of datasets that were made from Hugging Face datasets, against pylance."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import lance
import lance.hf
import lance.torch.data
import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import lance_dataset
import lance_dataset.torch.data
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.hf import HuggingFaceConverter

INFO: dict[str, Any] = {
    "info": {"features": {"i": {"_type": "Image"}, "l": {"_type": "ClassLabel"}, "a": {"_type": "Value"}}}
}
PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def _png(first: int) -> bytes:
    packed = io.BytesIO()
    Image.fromarray(np.arange(first, first + 48, dtype=np.uint8).reshape(4, 4, 3)).save(packed, "PNG")
    return packed.getvalue()


def _pixels(found: Any) -> Any:
    if isinstance(found, list):
        return [None if each is None else np.asarray(each).tolist() for each in found]
    return found


def test_pictures(tmp_path: Path) -> None:
    """Pictures come from bytes and from paths; a null is None, where pylance fails."""
    (tmp_path / "p.png").write_bytes(_png(9))
    values = [{"bytes": _png(1), "path": None}, {"bytes": None, "path": str(tmp_path / "p.png")}]
    array = pa.array(values, PICTURE)
    ours, theirs = HuggingFaceConverter(INFO), lance.hf.HuggingFaceConverter(INFO)
    for each in (array, array[1:], array[:0], pa.chunked_array([array, array])):
        assert _pixels(ours.to_pytorch("i", each)) == _pixels(theirs.to_pytorch("i", each))
    assert _pixels(ours.to_pytorch("i", pa.array([None, values[0]], PICTURE)))[0] is None


def test_other_columns() -> None:
    """Columns that the description lacks are left to the caller, other kinds are refused."""
    array = pa.array([1])
    for info in (INFO, {}, {"info": {}}):
        ours, theirs = HuggingFaceConverter(info), lance.hf.HuggingFaceConverter(info)
        assert ours.to_pytorch("zzz", array) is theirs.to_pytorch("zzz", array) is None
    unknown = {"info": {"features": {"zzz": {}}}}  # pylance fails
    assert HuggingFaceConverter(unknown).to_pytorch("zzz", array) is None
    with pytest.raises(NotImplementedError, match="Conversion to ClassLabel is not implemented"):
        lance.hf.HuggingFaceConverter(INFO).to_pytorch("l", array)
    with pytest.raises(UnsupportedError, match="Conversion to ClassLabel is not implemented"):
        HuggingFaceConverter(INFO).to_pytorch("l", array)
    for wrong in (pa.array(["p.png"]), pa.array([{"bytes": None, "path": None}], PICTURE)):
        with pytest.raises(InvalidInputError, match="a picture must have bytes or a path"):
            HuggingFaceConverter(INFO).to_pytorch("i", wrong)


@pytest.mark.parametrize("columns", [None, ["l"], ["l", "i"], ["i"]])
def test_dataset(tmp_path: Path, columns: list[str] | None) -> None:
    """A loop gets the pictures of image columns, and tensors of numbers, as with pylance."""
    pictures = pa.array([{"bytes": _png(n), "path": None} for n in range(5)], PICTURE)
    table = pa.table({"l": range(5), "i": pictures, "a": range(5)})
    ds = lance.write_dataset(table.replace_schema_metadata({"huggingface": json.dumps(INFO)}), tmp_path / "t.lance")
    theirs = list(lance.torch.data.LanceDataset(ds, 2, columns=columns))
    ours = list(lance_dataset.torch.data.LanceDataset(tmp_path / "t.lance", 2, columns=columns))
    assert len(ours) == len(theirs) == 3
    for mine, other in zip(ours, theirs, strict=True):
        one, two = ({"": each} if not isinstance(each, dict) else each for each in (mine, other))
        assert {n: _pixels(v) if isinstance(v, list) else v.tolist() for n, v in one.items()} == {
            n: _pixels(v) if isinstance(v, list) else v.tolist() for n, v in two.items()
        }


def test_description_that_is_not_json(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = pa.table({"l": [1]}).replace_schema_metadata({"huggingface": "{"})
    lance_dataset.write_dataset(table, tmp_path / "t.lance")
    (found,) = lance_dataset.torch.data.LanceDataset(tmp_path / "t.lance", 2)
    assert found.tolist() == [1]
    assert "not JSON" in caplog.text


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(UnsupportedError, match=r"lance-dataset\[images\]"):
        HuggingFaceConverter(INFO).to_pytorch("i", pa.array([{"bytes": b"x", "path": None}], PICTURE))
