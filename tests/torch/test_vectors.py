"""Tests of distances, clusters and exact neighbours computed by PyTorch, and of datasets read in another process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance.torch.bench_utils
import lance.torch.distance
import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.utils.data import IterableDataset

import lance_dataset
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, LanceError
from lance_dataset.torch import bench_utils, distance
from lance_dataset.torch.async_dataset import AsyncDataset, async_dataset
from lance_dataset.torch.data import LanceDataset
from lance_dataset.torch.kmeans import KMeans

GENERATOR = torch.Generator().manual_seed(5)
X = torch.randn(50, 8, generator=GENERATOR)
Y = torch.randn(7, 8, generator=GENERATOR)
#: Three clusters of 100 vectors.
CLUSTERS = torch.cat([torch.randn(100, 4, generator=GENERATOR) * 0.1 + center for center in (1.0, 10.0, -10.0)])


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    """Spare the reference the time to compile its functions."""
    with torch.compiler.set_stance("force_eager"):
        yield


# -- distances -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "name", ["pairwise_l2", "pairwise_cosine", "l2_distance", "cosine_distance", "dot_distance", "argmin_l2"]
)
def test_distances(name: str, dtype: torch.dtype) -> None:
    ours, theirs = (getattr(module, name)(X.to(dtype), Y.to(dtype)) for module in (distance, lance.torch.distance))
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    for found, wanted in pairs:
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def test_known_norms() -> None:
    torch.testing.assert_close(distance.pairwise_l2(X, Y, (Y * Y).sum(1)), distance.pairwise_l2(X, Y))
    torch.testing.assert_close(distance.l2_distance(X, Y, (Y * Y).sum(1)), distance.l2_distance(X, Y))
    norms = torch.linalg.vector_norm(Y, dim=1)
    torch.testing.assert_close(distance.pairwise_cosine(X, Y, y2=norms), distance.pairwise_cosine(X, Y))


def test_distances_to_nothing() -> None:
    """Vectors that have a distance to no centroid get the number -1; centroids with NaN get no vectors."""
    vectors = torch.tensor([[torch.nan, 1], [0, 0], [1, 1]])
    centroids = torch.tensor([[torch.nan, torch.nan], [1.0, 2.0]])
    for name, ids in (("l2_distance", [-1, 1, 1]), ("dot_distance", [-1, 1, 1]), ("cosine_distance", [-1, -1, 1])):
        found, distances = getattr(distance, name)(vectors, centroids)
        assert found.tolist() == ids
        assert distances.isnan().tolist() == [each < 0 for each in ids]
    assert distance.l2_distance(X[:0], Y)[0].shape == (0,)
    assert distance.dot_distance(X.int(), Y.int())[1].dtype == torch.int32
    assert distance.l2_distance(X.half(), Y.half())[1].dtype == torch.float16


def test_distances_far_from_the_origin() -> None:
    """Differences of large numbers do not lose their digits, unless the norms are given."""
    vectors, centroids = X.double() + 3000, Y.double() + 3000
    exact = torch.cdist(vectors, centroids, compute_mode="donot_use_mm_for_euclid_dist") ** 2
    torch.testing.assert_close(
        distance.pairwise_l2(vectors.float(), centroids.float()), exact.float(), rtol=1e-3, atol=0
    )
    assert torch.equal(distance.l2_distance(vectors.float(), centroids.float())[0], exact.argmin(1))


def test_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = distance.l2_distance(X, Y)
    monkeypatch.setattr(distance, "_BLOCK", 20)
    torch.testing.assert_close(distance.l2_distance(X, Y), expected)


@pytest.mark.parametrize("name", ["pairwise_l2", "pairwise_cosine", "l2_distance", "cosine_distance", "dot_distance"])
def test_wrong_vectors(name: str) -> None:
    function = getattr(distance, name)
    bad: list[tuple[Any, Any, str]] = [
        (X[0], Y, "must be 2-D"),
        (X, Y[:, :3], "vectors of 8 and of 3 values"),
        (X, Y.double(), "do not match"),
        (X.numpy(), Y, "needs tensors"),
    ]
    for vectors, centroids, message in bad:
        with pytest.raises(InvalidInputError, match=message):
            function(vectors, centroids)
    with pytest.raises(InvalidInputError, match="floating point"):
        distance.pairwise_cosine(X.int(), Y.int())
    with pytest.raises(InvalidInputError, match="at least one centroid"):
        distance.l2_distance(X, Y[:0])


# -- clusters ------------------------------------------------------------------------------------------------------


def arrow(vectors: torch.Tensor) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.numpy().ravel()), vectors.shape[1])


@pytest.mark.parametrize("metric", ["l2", "euclidean", "L2"])
@pytest.mark.parametrize("seed", range(3))
def test_clusters(metric: Any, seed: int) -> None:
    """Each group is in clusters of its own once there are some more clusters than groups."""
    model = KMeans(9, metric=metric, seed=seed, device="cpu")
    model.fit(CLUSTERS)
    groups = [set(model.transform(CLUSTERS[start : start + 100]).tolist()) for start in (0, 100, 200)]
    assert not groups[0] & groups[1] | groups[1] & groups[2] | groups[0] & groups[2]
    assert model.centroids is not None
    assert model.centroids.shape == (9, 4)
    again = KMeans(9, metric=metric, seed=seed, device="cpu")
    again.fit(CLUSTERS)
    torch.testing.assert_close(again.centroids, model.centroids)


def test_clusters_of_all_kinds_of_vectors(tmp_path: Path) -> None:
    data = [CLUSTERS, CLUSTERS.numpy(), arrow(CLUSTERS), pa.chunked_array([arrow(CLUSTERS)]), CLUSTERS.split(70)]
    lance_dataset.write_dataset(pa.table({"v": arrow(CLUSTERS)}), tmp_path / "t", max_rows_per_file=90)
    data += [LanceDataset(tmp_path / "t", 64, columns=["v"]), [{"v": part} for part in CLUSTERS.split(100)]]
    first = CLUSTERS[[0, 100, 200]]
    for each in data:
        model = KMeans(3, centroids=first.clone(), device="cpu")
        model.fit(each)
        assert model.centroids is not None
        torch.testing.assert_close(model.centroids, torch.stack([part.mean(0) for part in CLUSTERS.split(100)]))
    model = KMeans(3, seed=1, device="cpu")
    model.fit([{"v": CLUSTERS, "w": 0}], column="v")
    assert torch.equal(model.transform(CLUSTERS.numpy()), model.transform(arrow(CLUSTERS)))


def test_training_goes_on_until_the_distances_stay() -> None:
    spread = torch.rand(400, 4, generator=torch.Generator().manual_seed(2))
    totals = []
    for passes in (1, 2, 50):
        model = KMeans(12, seed=1, max_iters=passes, device="cpu")
        model.fit(spread)
        totals.append(model.total_distance)
    assert totals[0] > totals[1] > totals[2]


def test_clusters_by_direction() -> None:
    vectors = torch.cat([CLUSTERS[:100], CLUSTERS[200:]])
    for metric in ("cosine", "dot"):
        model = KMeans(2, metric=metric, centroids=torch.stack((vectors[0], vectors[150])), device="cpu")
        model.fit(vectors)
        assert model.transform(vectors).tolist() == [0] * 100 + [1] * 100
    model = KMeans(2, metric="cosine", seed=0, device="cpu")
    model.fit(vectors)
    torch.testing.assert_close(torch.linalg.vector_norm(model.centroids, dim=1), torch.ones(2))  # type: ignore[arg-type]


def test_vectors_with_nan_belong_to_no_cluster() -> None:
    vectors = CLUSTERS.clone()
    vectors[5] = torch.nan
    model = KMeans(3, seed=1, device="cpu")
    model.fit(vectors)
    assert model.centroids is not None
    assert not model.centroids.isnan().any()
    assert (model.transform(vectors) == -1).nonzero().tolist() == [[5]]


def test_empty_clusters_are_filled() -> None:
    far = torch.full((1, 4), 1e4)
    model = KMeans(4, centroids=torch.cat([CLUSTERS[:3], far]), device="cpu")
    model.fit(CLUSTERS)
    assert len(set(model.transform(CLUSTERS).tolist())) == 4
    model.centroids = model.centroids.flip(0)  # type: ignore[union-attr]
    model.rebuild_index()
    assert repr(model) == "KMeans(k=4, metric=l2, device=cpu)"


def test_wrong_clusters() -> None:
    for options in ({"k": 0}, {"metric": "x"}, {"init": "first"}, {"max_iters": 0}, {"centroids": X}):
        with pytest.raises(InvalidInputError):
            KMeans(**({"k": 3, "device": "cpu"} | options))
    model = KMeans(3, device="cpu")
    with pytest.raises(InvalidInputError, match="call fit first"):
        model.transform(X)
    with pytest.raises(InvalidInputError, match="50 vectors without NaN cannot make 51 clusters"):
        KMeans(51, device="cpu").fit(X)
    with pytest.raises(InvalidInputError, match="say which with column="):
        model.fit([{"a": X, "b": X}])
    with pytest.raises(InvalidInputError, match="vectors of 8 and of 3 values"):
        model.fit([X, X[:, :3]])
    with pytest.raises(InvalidInputError, match="must be a matrix"):
        model.fit(X[0])
    for wrong in (3, iter([X]), pa.array([1]), "text"):
        with pytest.raises(TypeError):
            model.fit(wrong)  # type: ignore[arg-type]


# -- benchmarks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["L2", "cosine"])
def test_ground_truth(tmp_path: Path, metric: str) -> None:
    vectors = pa.array([*arrow(X).to_pylist(), None], pa.list_(pa.float32(), 8))
    lance_dataset.write_dataset(pa.table({"v": vectors}), tmp_path / "t", max_rows_per_file=20)
    ours = lance_dataset.dataset(tmp_path / "t")
    ours.delete("_rowid = 3")
    found = bench_utils.ground_truth(ours, "v", Y, metric, k=5, batch_size=7, device="cpu")
    nearest = [
        ours.to_table(
            columns=[], with_row_id=True, nearest={"column": "v", "q": query.numpy(), "k": 5, "metric": metric}
        )
        for query in Y
    ]
    assert found.tolist() == [table["_rowid"].to_pylist() for table in nearest]
    ours.delete("v IS NULL")
    theirs = lance.dataset(str(tmp_path / "t"))
    wanted = lance.torch.bench_utils.ground_truth(theirs, "v", Y, metric, k=5, batch_size=7, device="cpu")
    assert torch.equal(bench_utils.ground_truth(ours, "v", Y.numpy(), metric, k=5, device="cpu"), wanted)
    assert bench_utils.ground_truth(ours, "v", Y, k=1000, device="cpu").shape == (7, 49)
    whole = Y.round()  # integers must not truncate the vectors that they are compared with
    wanted = bench_utils.ground_truth(ours, "v", whole, metric, k=5, device="cpu")
    assert torch.equal(bench_utils.ground_truth(ours, "v", whole.to(torch.int64), metric, k=5, device="cpu"), wanted)
    assert bench_utils.infer_vector_column(ours) == "v"
    for options, error in (({"metric_type": "dot"}, InvalidInputError), ({"k": 0}, InvalidInputError)):
        with pytest.raises(error):
            bench_utils.ground_truth(ours, "v", Y, **options)  # type: ignore[arg-type]
    with pytest.raises(FieldNotFoundError, match="'w'"):
        bench_utils.ground_truth(ours, "w", Y)


def test_recall_and_order() -> None:
    expected, actual = np.array([[1, 2, 3], [4, 5, 6]]), np.array([[1, 2, 9], [6, 5, 4]])
    recalls = [module.recall(expected, actual) for module in (bench_utils, lance.torch.bench_utils)]
    assert recalls[0].tolist() == recalls[1].tolist() == [2 / 3, 1]
    source, other = torch.tensor([[3.0, 1, 2], [9, 8, 7]]), torch.tensor([[1, 2, 3], [4, 5, 6]])
    for module in (bench_utils, lance.torch.bench_utils):
        least, ids = module.sort_tensors(source, other, 2)
        assert (least.tolist(), ids.tolist()) == ([[1, 2], [7, 8]], [[2, 3], [6, 5]])
    with pytest.raises(InvalidInputError):
        bench_utils.recall(expected, actual[:1])
    with pytest.raises(InvalidInputError):
        bench_utils.sort_tensors(source, other[:1], 2)


# -- another process -----------------------------------------------------------------------------------------------


class Numbers(IterableDataset[torch.Tensor]):
    def __init__(self, count: int, failure: str = "") -> None:
        self.count, self.failure = count, failure

    def __iter__(self) -> Iterator[torch.Tensor]:
        yield from (torch.full((100,), number) for number in range(self.count))
        if self.failure == "error":
            raise ValueError("nothing left")
        if self.failure == "kill":
            os.kill(os.getpid(), signal.SIGKILL)


def test_reading_ahead() -> None:
    with async_dataset(lambda: Numbers(20), queue_size=2) as dataset:
        for _ in range(2):
            assert [int(each[0]) for each in dataset] == list(range(20))
        first = next(iter(dataset))
        assert first.tolist() == [0] * 100
    for failure, message in (("error", "nothing left"), ("kill", "exit code -9")):
        other = AsyncDataset(lambda failure=failure: Numbers(3, failure))
        with pytest.raises(LanceError, match=message):
            list(other)
        other.close()
    with pytest.raises(InvalidInputError, match="queue_size"):
        AsyncDataset(lambda: Numbers(3), queue_size=0)
