"""Datasets of PyTorch that read Lance datasets: iterables of batches, and rows by number."""

from __future__ import annotations

import json
import math
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

import lance_dataset as lance
from lance_dataset.blob import BlobType
from lance_dataset.errors import InvalidInputError
from lance_dataset.hf import HuggingFaceConverter
from lance_dataset.log import LOGGER
from lance_dataset.sampler import (
    FullScanSampler,
    Sampler,
    ShardedBatchSampler,
    ShardedFragmentSampler,
    maybe_sample,
)
from lance_dataset.torch.dist import get_dist_rank, get_dist_world_size, get_mp_rank, get_mp_world_size
from lance_dataset.torch.shuffle import ShuffledRows
from lance_dataset.torch.tensors import ToTensorFn, concat_batches, to_tensor

__all__ = [
    "LanceDataset",
    "SafeLanceDataset",
    "ShuffledRows",
    "TensorDataset",
    "ToTensorFn",
    "concat_batches",
    "get_safe_loader",
    "to_tensor",
]


class LanceDataset(IterableDataset[Any]):
    """Iterable dataset of PyTorch whose items are batches of tensors, for loaders with ``batch_size=None``.

    Workers of a loader, and processes of ``torch.distributed``, get different rows. Workers may be forked or spawned.

    Parameters
    ----------
    dataset
        The dataset, or its location.
    batch_size
        Maximum number of rows in a batch. Parts of fragments are put together if they fit into a batch.
    dataset_options
        Options to open the location with.
    columns, filter
        As for `LanceDataset.scanner`. A single column is returned as a tensor, several as a dictionary of tensors.
    samples
        Number of rows to choose at random; 0 for all. Only the first worker returns them.
    cache
        True, or a folder, to keep the batches of the first epoch in a temporary file for the next ones.
    with_row_id
        True to append ``_rowid``.
    rank, world_size
        Number of this process, from 0, and number of processes; None to ask ``torch.distributed``.
    shard_granularity
        ``fragment`` to divide the fragments between processes and workers, ``batch`` to divide the batches; None for
        ``fragment`` if there are several.
    batch_readahead
        Maximum number of batches to read ahead if files are on other machines.
    to_tensor_fn
        Function that makes tensors of a batch; see `ToTensorFn`. Blob columns need one: it gets lists of `BlobFile`,
        which read when it asks for bytes.
    sampler
        Sampler that chooses the rows, such as `ShuffledRows`. Workers divide its batches.
    auto_detect_rank
        False to ignore ``torch.distributed``.
    *args, **kwargs
        Ignored, as in the reference.

    Raises
    ------
    InvalidInputError
        An option is wrong, or options contradict each other.
    """

    def __init__(
        self,
        dataset: lance.LanceDataset | str | os.PathLike[str],
        batch_size: int,
        *args: object,
        dataset_options: Mapping[str, Any] | None = None,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | None = None,
        samples: int | None = 0,
        cache: str | os.PathLike[str] | bool | None = None,
        with_row_id: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        shard_granularity: Literal["fragment", "batch"] | None = None,
        batch_readahead: int = 16,
        to_tensor_fn: ToTensorFn = to_tensor,
        sampler: Sampler | None = None,
        auto_detect_rank: bool = True,
        **kwargs: object,
    ) -> None:
        super().__init__()
        if shard_granularity not in (None, "fragment", "batch"):
            raise InvalidInputError(f"Invalid shard_granularity: {shard_granularity!r}; use 'fragment' or 'batch'")
        if batch_size < 1 or (samples or 0) < 0:
            raise InvalidInputError(f"batch_size must be at least 1 and samples at least 0: {batch_size}, {samples}")
        if samples and sampler is not None:
            raise InvalidInputError("samples and sampler cannot be given together")
        if rank is not None and not 0 <= rank < (world_size or 1):
            raise InvalidInputError(f"rank must be from 0 to world_size - 1, got {rank} of {world_size or 1}")
        known = isinstance(dataset, lance.LanceDataset)
        self.dataset: lance.LanceDataset = (
            dataset if known else lance.dataset(os.fspath(dataset), **(dataset_options or {}))  # type: ignore[assignment, arg-type]
        )
        self.batch_size = batch_size
        self.columns = columns
        self.filter = filter
        self.samples = samples or 0
        self.with_row_id = with_row_id
        self.rank = rank
        self.world_size = world_size
        self.shard_granularity = shard_granularity
        self.batch_readahead = batch_readahead
        self.sampler = sampler
        self._to_tensor_fn = to_tensor_fn
        self._auto_detect_rank = auto_detect_rank
        self._cache = _Cache(cache) if cache else None
        self._epoch = 0
        self._done = 0
        self._blobs = self._blob_columns()
        self._hf_converter = _hugging_face(self.dataset.schema)

    def __repr__(self) -> str:
        return f"LanceTorchDataset({self.dataset.uri}, size={self.batch_size})"

    @property
    def schema(self) -> pa.Schema:
        """Schema of the columns that are read."""
        if not self.columns:
            return self.dataset.schema
        return self.dataset.scanner(columns=self.columns, limit=0).projected_schema

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, each of which has another random order if the sampler has one."""
        self._epoch = epoch
        self._done = 0

    def state_dict(self) -> dict[str, int]:
        """Return where the loop of this process, or worker, is: the epoch, and the number of batches it has got."""
        return {"epoch": self._epoch, "batches": self._done}

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Go on with the next loop where `state_dict` was called.

        The dataset must have the same version, and the loop the same options and number of processes and workers.

        Raises
        ------
        InvalidInputError
            The state is not that of such a dataset.
        """
        try:
            epoch, batches = int(state_dict["epoch"]), int(state_dict["batches"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"not the state of a LanceDataset: {state_dict!r}") from error
        self._epoch, self._done = epoch, batches

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches of this process, or worker."""
        skipped = self._done
        for batch in self._kept(skipped):
            self._done += 1
            yield self._converted(batch)
        self._done = 0

    def _kept(self, skipped: int) -> Iterator[pa.RecordBatch]:
        """Yield the batches, without the first ones."""
        if isinstance(self.sampler, ShuffledRows) and self._cache is None:
            return self._raw(skip_batches=skipped)
        batches = self._raw() if self._cache is None else self._cache.kept(self._raw)
        return islice(batches, skipped, None)

    def _raw(self, **options: int) -> Iterator[pa.RecordBatch]:
        """Yield the batches as they are read."""
        columns = self._plain_columns()
        worker, workers = get_mp_rank(), get_mp_world_size()
        if self.samples:
            sample = maybe_sample(
                self.dataset, self.samples, self._with_row_id(columns), self.batch_size, filt=self.filter
            )
            return iter(()) if worker else sample
        sampler, every = self._own_sampler(worker, workers)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(self._epoch)
        found: Iterable[pa.RecordBatch] = sampler(
            self.dataset,
            batch_size=self.batch_size,
            columns=columns,
            filter=self.filter,
            batch_readahead=self.batch_readahead,
            with_row_id=self.with_row_id or bool(self._blobs),
            **options,
        )
        return _joined(found if every == 1 else islice(found, worker, None, every), self.batch_size)

    def _own_sampler(self, worker: int, workers: int) -> tuple[Sampler, int]:
        """Return the sampler of this worker, and the step by which it takes batches of it."""
        if self.sampler is not None:
            if workers == 1:
                return self.sampler, 1
            for_worker = getattr(self.sampler, "for_worker", None)
            return (self.sampler, workers) if for_worker is None else (for_worker(worker, workers), 1)
        rank, size = self.rank, self.world_size
        if rank is None and size is None and self._auto_detect_rank:
            rank, size = get_dist_rank(), get_dist_world_size()
        number, count = (rank or 0) * workers + worker, (size or 1) * workers
        if self.shard_granularity == "batch":
            return ShardedBatchSampler(number, count), 1
        if count > 1:
            return ShardedFragmentSampler(number, count), 1
        return FullScanSampler(), 1

    def _blob_columns(self) -> list[str]:
        """Return the columns that are read as files."""
        if isinstance(self.columns, Mapping):
            return []
        schema = self.dataset.schema
        names = schema.names if self.columns is None else [each for each in self.columns if each in schema.names]
        return [name for name in names if _is_blob(schema.field(name))]

    def _plain_columns(self) -> Sequence[str] | Mapping[str, str] | None:
        if not self._blobs:
            return self.columns
        names = self.dataset.schema.names if self.columns is None else list(self.columns)
        return [name for name in names if name not in self._blobs]

    def _with_row_id(self, columns: Sequence[str] | Mapping[str, str] | None) -> Sequence[str] | Mapping[str, str]:
        if isinstance(columns, Mapping):
            return {**columns, "_rowid": "_rowid"} if self.with_row_id else columns
        names = list(self.dataset.schema.names if columns is None else columns)
        return [*names, "_rowid"] if self.with_row_id or self._blobs else names

    def _converted(self, batch: pa.RecordBatch) -> Any:
        """Return what the loop gets for a batch."""
        if not self._blobs:
            return self._to_tensor_fn(batch, hf_converter=self._hf_converter, use_blob_api=False)
        columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        ids = columns["_rowid"].to_pylist()
        for name in self._blobs:
            columns[name] = self.dataset.take_blobs(name, ids=ids)
        return self._to_tensor_fn(columns, hf_converter=self._hf_converter, use_blob_api=True)


def _hugging_face(schema: pa.Schema) -> HuggingFaceConverter | None:
    """Return the converter for a dataset that was made from one of Hugging Face, which describes it in the schema."""
    text = (schema.metadata or {}).get(b"huggingface")
    if text is None:
        return None
    try:
        return HuggingFaceConverter(json.loads(text))
    except ValueError as error:
        LOGGER.warning("the description of a Hugging Face dataset is ignored, because it is not JSON: %s", error)
        return None


def _is_blob(field: pa.Field) -> bool:
    marked = (field.metadata or {}).get(b"lance-encoding:blob") == b"true"
    return marked or isinstance(field.type, BlobType) or getattr(field.type, "extension_name", "") == "lance.blob.v2"


def _joined(batches: Iterable[pa.RecordBatch], batch_size: int) -> Iterator[pa.RecordBatch]:
    """Put adjacent batches together as long as they fit into one."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if held and rows + batch.num_rows > batch_size:
            yield concat_batches(held)
            held, rows = [], 0
        held.append(batch)
        rows += batch.num_rows
        if rows >= batch_size:
            yield concat_batches(held)
            held, rows = [], 0
    if held:
        yield concat_batches(held)


class _Cache:
    """Batches of the first complete loop in a temporary file, one for each process."""

    def __init__(self, folder: str | os.PathLike[str] | bool) -> None:
        self._folder = None if isinstance(folder, bool) else os.fspath(folder)
        self._file: str | None = None
        self._process = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"_folder": self._folder, "_file": None, "_process": 0}

    def kept(self, read: Any) -> Iterator[pa.RecordBatch]:
        """Yield the batches: those of the file, or those that are read, which are kept then."""
        if self._file is not None and self._process == os.getpid():
            with pa.memory_map(self._file) as source, pa.ipc.open_stream(source) as reader:
                yield from reader
            return
        if self._folder is not None:
            Path(self._folder).mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix="lance-torch-dataset", dir=self._folder))
        weakref.finalize(self, _remove, place, os.getpid())
        writer = None
        with pa.OSFile(str(place / "batches"), "wb") as sink:
            for batch in read():
                writer = writer or pa.ipc.new_stream(sink, batch.schema)
                writer.write_batch(batch)
                yield batch
            if writer is None:
                return
            writer.close()
        self._file, self._process = str(place / "batches"), os.getpid()


def _remove(place: Path, process: int) -> None:
    if process == os.getpid():
        (place / "batches").unlink(missing_ok=True)
        place.rmdir()


class SafeLanceDataset(Dataset[dict[str, Any]]):
    """Map-style dataset of PyTorch whose items are rows, which each process opens anew.

    Parameters
    ----------
    uri
        Location of the dataset.
    dataset_options
        Options to open it with.
    columns
        Columns of the rows; None for all.
    **kwargs
        Ignored.
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        *,
        dataset_options: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__()
        self.uri = os.fspath(uri)
        self.dataset_options = dict(dataset_options or {})
        self.columns = columns
        opened = lance.dataset(self.uri, **self.dataset_options)
        # All processes read the version that this one has found.
        self.dataset_options.setdefault("version", opened.version)
        self._len = opened.count_rows()
        self._opened: tuple[int, lance.LanceDataset] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def _dataset(self) -> lance.LanceDataset:
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), lance.dataset(self.uri, **self.dataset_options)
        return self._opened[1]

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._len

    def __getitem__(self, idx: int) -> dict[str, Any]:
        """Return a row as a dictionary."""
        return self.__getitems__([idx])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Return rows, in the order of the numbers."""
        found: list[dict[str, Any]] = self._dataset().take(list(indices), columns=self.columns).to_pylist()
        return found


def get_safe_loader(
    dataset: Dataset[Any], batch_size: int = 32, num_workers: int = 4, **kwargs: Any
) -> DataLoader[Any]:
    """Make a loader whose workers are spawned and kept from epoch to epoch.

    Parameters
    ----------
    dataset
        The dataset, for example a `SafeLanceDataset`.
    batch_size, num_workers
        As for ``torch.utils.data.DataLoader``.
    **kwargs
        Further arguments of it, which replace those that this function chooses.
    """
    chosen: dict[str, Any] = {"multiprocessing_context": "spawn", "persistent_workers": True} if num_workers else {}
    return DataLoader(dataset, **{"batch_size": batch_size, "num_workers": num_workers, **chosen, **kwargs})


class TensorDataset(Dataset[torch.Tensor]):
    """Dataset whose items are consecutive rows of a tensor, as many as a batch has.

    Parameters
    ----------
    data
        The rows.
    batch_size
        Number of rows in an item. The last one may have fewer.
    *args, **kwargs
        Ignored.
    """

    def __init__(self, data: torch.Tensor | np.ndarray[Any, Any], batch_size: int, *args: object, **kwargs: object):
        super().__init__()
        if batch_size < 1:
            raise InvalidInputError(f"batch_size must be at least 1, got {batch_size}")
        self._data = torch.from_numpy(data) if isinstance(data, np.ndarray) else data
        self._batch_size = batch_size

    def __len__(self) -> int:
        """Return the number of batches."""
        return math.ceil(len(self._data) / self._batch_size)

    def __getitem__(self, idx: int) -> torch.Tensor:
        """Return a batch. Raises IndexError behind the last one."""
        if not 0 <= idx < len(self):
            raise IndexError(f"batch {idx} of {len(self)}")
        return self._data[idx * self._batch_size : (idx + 1) * self._batch_size]
