"""Tests of Arrow types for bfloat16 and images, against those of pylance."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.arrow
import ml_dtypes
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import lance_dataset
from lance_dataset import arrow
from lance_dataset.errors import InvalidInputError

FLOATS = st.lists(st.none() | st.floats(width=32), max_size=30)


@given(FLOATS)
def test_rounding_and_text(values: list[float | None]) -> None:
    ours, theirs = arrow.bfloat16_array(values), lance.arrow.bfloat16_array(values)
    for mine, other in zip(ours.to_pylist(), theirs.to_pylist(), strict=True):
        assert repr(mine) == repr(other)
        if mine is not None:
            assert mine.as_float() == other.as_float() or mine != mine
    same = [pair for pair in zip(ours.storage, theirs.storage, strict=True) if str(pair[0]) != str(pair[1])]
    assert all(np.isnan(arrow.BFloat16.from_bytes(mine.as_py()).as_float()) for mine, _ in same)


def test_all_bits_come_back() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    array = arrow.BFloat16Array.from_numpy(bits.view(ml_dtypes.bfloat16))
    assert np.array_equal(array.to_numpy().view(np.uint16), bits)
    floats = arrow.cast(array, pa.float32())
    expected = bits.view(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(floats.to_numpy(), expected, equal_nan=True)
    back = arrow.cast(floats, "bf16").to_numpy()
    assert np.array_equal(back.astype(np.float32), expected, equal_nan=True)


@given(st.lists(st.floats(), min_size=1, max_size=20), st.sampled_from([np.float16, np.float32, np.float64]))
def test_casts(values: list[float], kind: Any) -> None:
    with np.errstate(over="ignore"):
        source = pa.array(np.array(values).astype(kind))
    ours, theirs = arrow.cast(source, "bfloat16"), lance.arrow.cast(source, "bfloat16")
    assert str(ours) == str(theirs)
    for target in (pa.float16(), pa.float32(), pa.float64()):
        found = np.asarray(arrow.cast(ours, target))
        assert np.array_equal(found, np.asarray(lance.arrow.cast(theirs, target)), equal_nan=True)


def test_casts_of_lists() -> None:
    source = pa.array([[9, 9], [1.1, 2], None, [3, 4]], pa.list_(pa.float32(), 2)).slice(1)
    found = arrow.cast(source, pa.list_(arrow.BFloat16Type(), 2))
    assert repr(found.to_pylist()) == "[[1.1015625, 2], None, [3, 4]]"
    assert arrow.cast(found, pa.list_(pa.float64(), 2)).to_pylist() == [[1.1015625, 2.0], None, [3.0, 4.0]]
    assert arrow.cast(pa.array([1.5, None]), pa.float32()).to_pylist() == [1.5, None]
    assert repr(arrow.cast(arrow.bfloat16_array([1, None]), "bf16").to_pylist()) == "[1, None]"
    assert arrow.cast(arrow.bfloat16_array([1, None]), "float32").to_pylist() == [1.0, None]


@pytest.mark.parametrize(
    "call",
    [
        lambda a: a.cast(pa.array([1]), "bfloat16"),
        lambda a: a.cast(a.bfloat16_array([1.0]), pa.int32()),
        lambda a: a.cast(pa.array([[1.0]], pa.list_(pa.float32(), 1)), pa.list_(pa.float32(), 2)),
        lambda a: a.bfloat16_array([None]).to_numpy(),
        lambda a: a.BFloat16Array.from_numpy(np.array([1.0])),
        lambda a: a.BFloat16.from_bytes(b"a"),
        lambda a: a.EncodedImageType(pa.string()),
        lambda a: a.ImageURIType(pa.binary()),
        lambda a: a.EncodedImageArray.from_storage(a.EncodedImageType(), pa.array([b"junk"])).to_tensor(),
    ],
)
def test_refused_as_in_pylance(call: Callable[[Any], object]) -> None:
    for module in (arrow, lance.arrow):
        with pytest.raises((ValueError, OSError)):
            call(module)


def test_numbers() -> None:
    one, two = arrow.BFloat16(1), arrow.BFloat16(2.0)
    assert one < two
    assert (one == arrow.BFloat16(1.0), one == 1.0) == (True, False)
    assert (float(two), hash(two), pickle.loads(pickle.dumps(two))) == (2.0, hash(2.0), two)
    assert arrow.bfloat16_array([1])[0] == one
    for wrong in ("x", None):
        with pytest.raises(TypeError):
            arrow.BFloat16(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        arrow.bfloat16_array(["x"])  # type: ignore[list-item]
    assert str(arrow.bfloat16_array([0.0] * 30)).count("0") == 20
    assert str(arrow.bfloat16_array([])) == "[]"


def test_datasets_of_both(tmp_path: Path) -> None:
    """Both packages read what the other writes; the search by vectors of bfloat16 works."""
    vectors = arrow.cast(pa.array([[1.5, 2], [3, 4]], pa.list_(pa.float32(), 2)), pa.list_(arrow.BFloat16Type(), 2))
    table = pa.table({"n": arrow.bfloat16_array([1.5, None]), "v": vectors})
    for writer, reader in ((lance_dataset, lance), (lance, lance_dataset)):
        path = tmp_path / writer.__name__
        writer.write_dataset(table, path)
        found = reader.dataset(path).to_table()
        assert repr(found.to_pydict()) == repr(table.to_pydict())
        assert found.schema.field("n").type.extension_name == "lance.bfloat16"
    near = lance_dataset.dataset(tmp_path / "lance").to_table(nearest={"column": "v", "q": [3.0, 4.0], "k": 1})
    assert near["_distance"].to_pylist() == [0.0]


def test_pandas() -> None:
    frame = pa.table({"a": arrow.bfloat16_array([1.1, None, 3])}).to_pandas()
    column = pd.concat([frame, frame])["a"]
    assert str(column.dtype) == "lance.bfloat16"
    assert column.isna().tolist() == [False, True, False] * 2
    assert repr(column.dropna().tolist()) == "[1.1015625, 3, 1.1015625, 3]"
    made = pd.Series([1.1, 2.0, None], dtype=arrow.BFloat16Type().to_pandas_dtype())
    assert repr(pa.array(made).to_pylist()) == "[1.1015625, 2, None]"
    assert (made.array == arrow.PandasBFloat16Array._from_sequence([1.1, 3.0, None])).tolist() == [True, False, False]
    assert made.reindex([2, 0, 9]).isna().tolist() == [True, False, True]
    assert made[[True, False, True]].size == made.astype(object).iloc[:2].size == 2
    some = arrow.PandasBFloat16Array.from_numpy(np.array([1, 2], ml_dtypes.bfloat16))
    assert some.to_numpy().dtype == ml_dtypes.bfloat16
    assert some.to_numpy(np.float32).tolist() == [1.0, 2.0]
    assert (len(some.copy()), some.nbytes) == (2, 6)


@pytest.fixture
def images(tmp_path: Path) -> list[str]:
    pixels = np.arange(48, dtype=np.uint8).reshape(2, 2, 3, 4)
    for number, each in enumerate(pixels):
        Image.fromarray(each).save(tmp_path / f"{number}.png")
    return [str(tmp_path / "0.png"), (tmp_path / "1.png").as_uri()]


def test_images(images: list[str], tmp_path: Path) -> None:
    """From URIs to bytes to pixels and back, as in pylance; both packages read the other's datasets."""
    found = []
    for module, package, other in ((arrow, lance_dataset, lance), (lance.arrow, lance, lance_dataset)):
        uris = module.ImageURIArray.from_uris(images)
        encoded = uris.read_uris()
        pixels = encoded.to_tensor()
        table = pa.table({"uri": uris, "image": encoded, "pixels": pixels})
        package.write_dataset(table, tmp_path / package.__name__)
        read = other.dataset(tmp_path / package.__name__).to_table()
        assert read.to_pydict() == table.to_pydict()
        assert read["pixels"].combine_chunks().to_numpy().shape == (2, 2, 3, 4)
        again = pixels.to_encoded(storage_type=pa.large_binary())
        assert np.array_equal(again.to_tensor().to_numpy(), pixels.to_numpy())
        found.append([*(each.type.extension_name for each in (uris, encoded, pixels)), *pixels.to_pylist()])
        found[-1] += [pixels.type.__arrow_ext_serialize__(), again.type.storage_type, uris[0].as_py()]
    assert found[0] == found[1]


def test_functions_that_decode_and_encode(images: list[str]) -> None:
    encoded = arrow.ImageURIArray.from_uris(images).read_uris(pa.large_binary())
    tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((2, 3, 4), np.uint8))
    for decoder in (lambda _: np.zeros((2, 3, 4), np.uint8), lambda _: tensor):
        pixels = encoded.to_tensor(decoder)
        assert pixels.to_numpy().shape == (2, 3, 4)
    assert pixels.to_encoded(lambda array: [b"x"] * len(array)).to_pylist() == [b"x", b"x"]
    with pytest.raises(TypeError, match="encoder must return"):
        pixels.to_encoded(lambda _: b"x")  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidInputError, match="decoder must return"):
        encoded.to_tensor(lambda _: np.zeros(2))


def test_kinds_of_images(images: list[str]) -> None:
    tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((1, 2, 3), np.uint8))
    uris = arrow.ImageURIArray.from_uris([Path(images[0]), None])
    assert uris.read_uris().to_pylist()[1] is None
    kinds = {
        arrow.ImageURIArray: [images, pa.array(images), pa.array(images, pa.large_string()), uris, []],
        arrow.EncodedImageArray: [pa.array([b"x"]), pa.array([b"x"], pa.large_binary())],
        arrow.FixedShapeImageTensorArray: [tensor],
    }
    for kind, values in kinds.items():
        for value in values:
            found = arrow.ImageArray.from_array(value)
            assert isinstance(found, kind)
            assert type(found).__name__ in repr(found)
            assert pickle.loads(pickle.dumps(found.type)) == found.type
    for wrong in (None, 3, pa.array([1]), "abc"):
        with pytest.raises(TypeError):
            arrow.ImageArray.from_array(wrong)
    for nothing in (uris.read_uris(), arrow.ImageURIArray.from_uris([]).read_uris()):
        with pytest.raises(InvalidInputError):
            nothing.to_tensor()
    with pytest.raises(FileNotFoundError):
        arrow.ImageURIArray.from_uris([images[0] + "x"]).read_uris()
