"""Exact searches that find the vectors of earlier ones in mapped files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset import LanceDataset
from lance_dataset.scan.nearest.views import kept_views

ROWS, DIMENSION = 4_000, 32


def written(path: Path, kind: pa.DataType, *, nulls: bool = False, **options: Any) -> LanceDataset:
    rng = np.random.default_rng(1)
    numbers = rng.standard_normal(ROWS * DIMENSION) * 9
    elements = pa.array(numbers.astype(kind.to_pandas_dtype()), kind)
    mask = pa.array(rng.random(ROWS) < 0.1) if nulls else None
    vectors = pa.FixedSizeListArray.from_arrays(elements, DIMENSION, mask=mask)
    return lance_dataset.write_dataset(pa.table({"id": np.arange(ROWS), "v": vectors}), path, **options)


def is_kept(dataset: LanceDataset) -> bool:
    return bool(kept_views(dataset.snapshot.reader))


def check(dataset: LanceDataset) -> None:
    """Compare repeated searches with those of a handle that has searched nothing yet, through a scan that counts."""
    rng = np.random.default_rng(2)
    for metric in ("l2", "cosine", "dot"):
        for _ in range(3):
            nearest = {"column": "v", "q": rng.standard_normal(DIMENSION), "k": 7, "metric": metric}
            found = dataset.to_table(nearest=nearest)
            assert found == dataset.scanner(nearest=nearest, scan_stats_callback=lambda _: None).to_table()
    batch = {"column": "v", "q": rng.standard_normal((3, DIMENSION)), "k": 7}
    assert (
        dataset.to_table(nearest=batch) == dataset.scanner(nearest=batch, scan_stats_callback=lambda _: None).to_table()
    )


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.float16(), pa.int8()], ids=str)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_plain_columns(tmp_path: Path, kind: pa.DataType, version: str) -> None:
    dataset = written(tmp_path / "t", kind, data_storage_version=version, max_rows_per_file=ROWS // 3)
    check(dataset)
    assert is_kept(dataset)
    (views,) = kept_views(dataset.snapshot.reader).values()
    assert views.nbytes == (
        0 if kind == pa.int8() else ROWS * (DIMENSION + 8)
    )  # coarse codes of what is searched often


def test_what_is_not_kept(tmp_path: Path) -> None:
    nulls = written(tmp_path / "nulls", pa.float32(), nulls=True)
    check(nulls)
    assert not is_kept(nulls)
    stable = written(tmp_path / "stable", pa.float32(), enable_stable_row_ids=True)
    check(stable)
    assert not is_kept(stable)
    written(tmp_path / "plain", pa.float32())
    read = lance_dataset.dataset(tmp_path / "plain", storage_options={"mmap": "false"})
    check(read)
    assert not is_kept(read)


def test_other_versions_and_rows(tmp_path: Path) -> None:
    dataset = written(tmp_path / "t", pa.float32(), max_rows_per_file=ROWS // 2)
    check(dataset)
    assert is_kept(dataset)
    dataset.delete("id % 3 = 0")
    check(dataset)
    nearest = {"column": "v", "q": np.zeros(DIMENSION), "k": ROWS}
    rest = dataset.to_table(columns=["id"], nearest=nearest)["id"].to_numpy()
    assert len(rest) == dataset.count_rows()
    assert (rest % 3 != 0).all()
    some = dataset.to_table(columns=["id"], nearest=nearest, filter="id < 50", prefilter=True)
    assert sorted(some["id"].to_pylist()) == [each for each in range(50) if each % 3]
    first = dataset.get_fragments()[0]
    part = dataset.to_table(columns=["id"], nearest=nearest, fragments=[first], prefilter=True)
    assert part.num_rows == first.count_rows()
