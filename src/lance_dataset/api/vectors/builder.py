"""Step-wise builds of IVF_PQ indices: `IndicesBuilder`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.api.vector_models import IvfModel, PqModel
from lance_dataset.arguments import checked_integer
from lance_dataset.errors import CorruptFileError, InvalidInputError, UnsupportedError
from lance_dataset.file.standalone import LanceFileReader, LanceFileWriter
from lance_dataset.index.vector.storage import ROW_ID
from lance_dataset.index.vector.training.devices import device_of
from lance_dataset.index.vector.training.entries import vector_type
from lance_dataset.index.vector.training.parameters import VectorParameters
from lance_dataset.index.vector.training.shuffling import PartitionedRows

if TYPE_CHECKING:
    from lance_dataset.api.dataset.dataset import LanceDataset
    from lance_dataset.api.fragment.fragment import LanceFragment

__all__ = ["PARTITION_COLUMN", "PQ_COLUMN", "RESIDUAL_COLUMN", "IndicesBuilder"]

_METRICS = ("l2", "cosine", "dot", "hamming")
#: Columns of the partitions and of the codes of rows, in files of codes.
PARTITION_COLUMN, PQ_COLUMN, RESIDUAL_COLUMN = "__ivf_part_id", "__pq_code", "__residual_vector"
#: Key of the sum of distances to the centroids, in files of codes.
_LOSS = "_loss"
_SHUFFLE_BYTES = 256 << 20


class IndicesBuilder:
    """Builds an index of the kind IVF_PQ step by step: models, codes of fragments, codes by partition, the index.

    Steps exchange files, so other processes may do some of them. `create_index` does all of them in one call.

    Parameters
    ----------
    dataset
        The dataset.
    column
        Name of a column of fixed-size lists of floats; or a list of one name.

    Attributes
    ----------
    dataset : LanceDataset
    column : list of str
    dimension : int
        Number of values of a vector.

    Raises
    ------
    KeyError
        The column does not exist.
    TypeError
        It has no vectors, or there are several columns.
    """

    def __init__(self, dataset: LanceDataset, column: str | Sequence[str]) -> None:
        names = [column] if isinstance(column, str) else list(column)
        if len(names) != 1:
            raise TypeError(f"an index is of one column, not of {len(names)}")
        by_name = {name: number for number, name in dataset.snapshot.manifest.schema.paths_by_id()}
        if names[0] not in by_name:
            raise KeyError(f"{names[0]} not found in schema")
        kind = dataset.snapshot.manifest.schema.by_id[by_name[names[0]]].storage_type
        vectors = vector_type(kind)
        if vectors is None:
            raise TypeError(
                f"Vector column {names[0]} must be fixed-size lists of floats, or lists of them, got {kind}"
            )
        self.dataset = dataset
        self.column = names
        self.dimension = int(vectors.list_size)

    def train_ivf(
        self,
        num_partitions: int | None = None,
        *,
        distance_type: str = "l2",
        accelerator: object = None,
        sample_rate: int = 256,
        max_iters: int = 50,
        fragment_ids: Sequence[int] | None = None,
    ) -> IvfModel:
        """Train the centroids of partitions.

        Parameters
        ----------
        num_partitions
            Number of partitions; None for the root of the number of rows.
        distance_type
            ``l2``, ``cosine`` or ``dot``.
        accelerator
            ``cuda``, ``mps`` or a `torch.device` that trains the centroids; None for processors.
        sample_rate, max_iters
            Vectors for a partition, and maximum number of iterations.
        fragment_ids
            Fragments to train with; None for all.

        Raises
        ------
        ValueError
            There are too few rows, a fragment does not exist, or a parameter is out of range.
        UnsupportedError
            PyTorch is not installed, or has no such device.
        """
        fragments, rows = self._fragments(fragment_ids)
        rate, metric = _rate(sample_rate), _metric(distance_type)
        count = round(math.sqrt(rows)) if num_partitions is None else checked_integer("num_partitions", num_partitions)
        if count * rate > rows:
            raise InvalidInputError(
                f"There are not enough rows in the dataset to create IVF centroids with {count} partitions and a "
                f"sample rate of {rate}. {count * rate} rows needed and there are {rows}"
            )
        if not count:
            raise InvalidInputError("num_partitions must be positive, not 0")
        iterations, device = _iterations(max_iters), device_of(accelerator)
        parameters = VectorParameters("IVF_FLAT", metric, count, sample_rate=rate, iterations=iterations, device=device)
        return IvfModel(_lists(self._trained(parameters, fragments)[0]), metric)

    def train_pq(
        self,
        ivf_model: IvfModel,
        num_subvectors: int | None = None,
        *,
        sample_rate: int = 256,
        max_iters: int = 50,
        num_bits: int = 8,
        fragment_ids: Sequence[int] | None = None,
    ) -> PqModel:
        """Train the codewords of product quantization.

        Parameters
        ----------
        ivf_model
            Centroids.
        num_subvectors
            Number of parts of a vector; None for a part of 16 values each or, if 16 does not divide the dimension, of
            8 values.
        sample_rate, max_iters
            Vectors for a codeword, and maximum number of iterations.
        num_bits
            Bits of the number of a codeword: 8 or 4.
        fragment_ids
            Fragments to train with; None for all.

        Raises
        ------
        ValueError
            There are too few rows, a fragment does not exist, or a parameter is out of range.
        """
        fragments, rows = self._fragments(fragment_ids)
        rate, bits = _rate(sample_rate), checked_integer("num_bits", num_bits)
        if bits not in (4, 8):
            raise InvalidInputError(f"num_bits must be 8 or 4, not {bits}")
        if rate << bits > rows:
            raise InvalidInputError(
                f"There are not enough rows in the dataset to create PQ codebook with a sample rate of {rate} and "
                f"num_bits of {bits}. {rate << bits} rows needed and there are {rows}"
            )
        parameters = VectorParameters(
            "IVF_PQ",
            _metric(ivf_model.distance_type),
            sub_vectors=self._parts(num_subvectors),
            bits=bits,
            sample_rate=rate,
            iterations=_iterations(max_iters),
            centroids=_matrix(ivf_model.centroids),
        )
        codewords = self._trained(parameters, fragments)[1]
        return PqModel(parameters.sub_vectors or 1, _lists(np.asarray(codewords)), num_bits=bits)

    def prepare_global_ivf_pq(
        self,
        num_partitions: int | None,
        num_subvectors: int | None,
        *,
        distance_type: str = "l2",
        accelerator: object = None,
        sample_rate: int = 256,
        max_iters: int = 50,
        num_bits: int = 8,
        fragment_ids: Sequence[int] | None = None,
    ) -> dict[str, pa.FixedSizeListArray]:
        """Train centroids and codewords that several workers can give to `create_index_uncommitted`.

        Parameters
        ----------
        num_partitions, distance_type, accelerator
            See `train_ivf`.
        num_subvectors, num_bits
            See `train_pq`.
        sample_rate, max_iters, fragment_ids
            See both.

        Returns
        -------
        dict
            ``ivf_centroids`` and ``pq_codebook``.
        """
        ivf = self.train_ivf(
            num_partitions,
            distance_type=distance_type,
            accelerator=accelerator,
            sample_rate=sample_rate,
            max_iters=max_iters,
            fragment_ids=fragment_ids,
        )
        pq = self.train_pq(
            ivf,
            num_subvectors,
            sample_rate=sample_rate,
            max_iters=max_iters,
            num_bits=num_bits,
            fragment_ids=fragment_ids,
        )
        return {"ivf_centroids": ivf.centroids, "pq_codebook": pq.codebook}

    def assign_ivf_partitions(self, ivf_model: IvfModel, accelerator: object, *, output_uri: str | None = None) -> str:
        """Find the partition of each vector with PyTorch; see `lance_dataset.vector.compute_partitions`.

        Parameters
        ----------
        ivf_model
            Centroids.
        accelerator
            ``cuda``, ``mps`` or a `torch.device`; None for the best one that there is.
        output_uri
            Path or URI of the new dataset; None for a new temporary folder, which the caller removes.

        Returns
        -------
        str
            Path or URI of the new dataset, with the columns ``row_id`` and ``partition``.

        Raises
        ------
        OSError
            There is already a dataset (an `AlreadyExistsError`).
        UnsupportedError
            PyTorch is not installed, or has no such device.
        """
        from lance_dataset.api.vectors.accelerators import compute_partitions, model_of_centroids

        model = model_of_centroids(_matrix(ivf_model.centroids), ivf_model.distance_type, accelerator)
        return compute_partitions(self.dataset, self.column[0], model, dst_dataset_uri=output_uri)

    def transform_vectors(
        self,
        ivf: IvfModel,
        pq: PqModel,
        dest_uri: str,
        fragments: Sequence[LanceFragment] | None = None,
        partition_ds_uri: str | None = None,
    ) -> None:
        """Write the partitions and codes of vectors to a Lance file.

        Parameters
        ----------
        ivf, pq
            The models.
        dest_uri
            Path or URI of the file.
        fragments
            Fragments to read; None for all.
        partition_ds_uri
            Refused: vectors are assigned to partitions as they are read.

        Raises
        ------
        ValueError
            The models do not fit the column.
        """
        from lance_dataset.changes.indexing.stepwise import encoded_vectors

        if partition_ds_uri is not None:
            raise UnsupportedError(
                "partition_ds_uri is not supported: vectors are assigned to partitions as they are read"
            )
        chosen, _ = self._fragments(None if fragments is None else [each.fragment_id for each in fragments])
        parameters = _parameters(ivf, pq)
        loss = 0.0
        with LanceFileWriter(dest_uri, _schema(pq)) as writer:
            for places, columns, part in encoded_vectors(self.dataset.snapshot, self.column[0], parameters, chosen):
                loss += part
                writer.write_batch(_batch(places, columns, pq))
            writer.add_schema_metadata(_LOSS, str(loss))

    def shuffle_transformed_vectors(
        self,
        unsorted_filenames: Sequence[str],
        dir_path: str,
        ivf: IvfModel,
        shuffle_output_root_filename: str | None = "sorted",
    ) -> list[str]:
        """Group the codes of files of `transform_vectors` by partition.

        Parameters
        ----------
        unsorted_filenames
            Names of the files.
        dir_path
            Their folder, and that of the new file.
        ivf
            Centroids.
        shuffle_output_root_filename
            Beginning of the name of the new file.

        Returns
        -------
        list of str
            The name of the new file, which has a row for each partition.

        Raises
        ------
        ValueError
            There are no files, or a file holds something else.
        """
        if not unsorted_filenames:
            raise InvalidInputError("unsorted_filenames must name the files to group")
        name = f"{shuffle_output_root_filename or 'sorted'}_0.lance"
        loss = 0.0
        with PartitionedRows(ivf.num_partitions, _SHUFFLE_BYTES) as gathered:
            for each in unsorted_filenames:
                reader = LanceFileReader(f"{dir_path}/{each}")
                loss += _loss(reader)
                for batch in reader.read_all().to_batches():
                    gathered.add(*_split(batch, ivf.num_partitions, each))
            with LanceFileWriter(f"{dir_path}/{name}") as writer:
                for number, part in enumerate(gathered.partitions()):
                    rows = _grouped(number, part)
                    writer.write_batch(rows)
                writer.add_schema_metadata(_LOSS, str(loss))
        return [name]

    def load_shuffled_vectors(
        self,
        filenames: Sequence[str] | str,
        dir_path: str,
        ivf: IvfModel,
        pq: PqModel,
        index_name: str | None = None,
    ) -> None:
        """Commit an index of the codes of files of `shuffle_transformed_vectors`, and move the dataset to the version.

        It covers the fragments that have rows in the files.

        Parameters
        ----------
        filenames
            Names of the files.
        dir_path
            Their folder.
        ivf, pq
            The models that the codes were made with.
        index_name
            Name of the index, by default the column's with ``_idx`` added.

        Raises
        ------
        ValueError
            There are no rows, or a file holds something else.
        RuntimeError
            An index has the name (an `InvalidIndexError`).
        CommitConflictError
            Other writers changed the rows or the indices, and the retries ran out.
        """
        from lance_dataset.changes.indexing.stepwise import published_codes

        names = [filenames] if isinstance(filenames, str) else list(filenames)
        readers = [LanceFileReader(f"{dir_path}/{each}") for each in names]

        def blocks() -> Iterator[tuple[NDArray[np.int32], dict[str, NDArray[Any]]]]:
            for name, reader in zip(names, readers, strict=True):
                for batch in reader.read_all(batch_size=1).to_batches():
                    yield _split(_rows(batch, name), ivf.num_partitions, name)

        self.dataset.show(
            published_codes(
                self.dataset.snapshot,
                self.column[0],
                index_name,
                _parameters(ivf, pq),
                blocks(),
                sum(map(_loss, readers)),
            )
        )

    def _fragments(self, fragment_ids: Sequence[int] | None) -> tuple[list[int], int]:
        """Return ids of fragments, and the number of their rows."""
        known = {each.fragment_id: each for each in self.dataset.get_fragments()}
        chosen = list(known) if fragment_ids is None else list(fragment_ids)
        for each in chosen:
            if each not in known:
                raise InvalidInputError(f"Fragment id does not exist: {each}")
        return chosen, sum(known[each].count_rows() for each in chosen)

    def _parts(self, given: int | None) -> int:
        if given is None:
            width = next((width for width in (16, 8) if self.dimension % width == 0), 1)
            return self.dimension // width
        parts = checked_integer("num_subvectors", given)
        if not parts:
            raise InvalidInputError("num_subvectors must be greater than 0")
        if self.dimension % parts:
            raise InvalidInputError(
                f"dimension ({self.dimension}) must be divisible by num_subvectors ({parts}) without remainder"
            )
        return parts

    def _trained(
        self, parameters: VectorParameters, fragment_ids: Sequence[int]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        from lance_dataset.changes.indexing.stepwise import trained

        return trained(self.dataset.snapshot, self.column[0], parameters, fragment_ids)


# -- arguments ---------------------------------------------------------------------------------------------------------


def _rate(value: object) -> int:
    rate = checked_integer("sample_rate", value, bits=31)
    if rate < 2:
        raise InvalidInputError(f"The sample_rate must be an int greater than 1, got {rate}")
    return rate


def _iterations(value: object) -> int:
    found = checked_integer("max_iters", value, bits=31)
    if not found:
        raise InvalidInputError("max_iters must be positive, not 0")
    return found


def _metric(name: str) -> str:
    found = {"euclidean": "l2"}.get(name.lower(), name.lower())
    if found not in _METRICS:
        raise InvalidInputError(f"Distance type {name} not supported.")
    return found


def _parameters(ivf: IvfModel, pq: PqModel) -> VectorParameters:
    return VectorParameters(
        "IVF_PQ",
        _metric(ivf.distance_type),
        sub_vectors=pq.num_subvectors,
        bits=pq.num_bits,
        centroids=_matrix(ivf.centroids),
        codewords=_matrix(pq.codebook).reshape(-1),
    )


def _matrix(array: pa.FixedSizeListArray) -> NDArray[Any]:
    return np.asarray(array.flatten()).reshape(len(array), array.type.list_size)


def _lists(values: NDArray[Any]) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).reshape(-1)), values.shape[1])


# -- files -------------------------------------------------------------------------------------------------------------


def _schema(pq: PqModel) -> pa.Schema:
    code = pa.list_(pa.uint8(), pq.num_subvectors * pq.num_bits // 8)
    return pa.schema(
        [
            pa.field(ROW_ID, pa.uint64()),
            pa.field(PARTITION_COLUMN, pa.uint32()),
            pa.field(PQ_COLUMN, code, nullable=False),
        ]
    )


def _batch(places: NDArray[np.int32], columns: Any, pq: PqModel) -> pa.RecordBatch:
    arrays = [pa.array(columns[ROW_ID]), pa.array(places.astype(np.uint32)), _lists(columns[PQ_COLUMN])]
    return pa.RecordBatch.from_arrays(arrays, schema=_schema(pq))


def _split(batch: pa.RecordBatch, partitions: int, name: str) -> tuple[NDArray[np.int32], dict[str, NDArray[Any]]]:
    """Return partitions and columns of rows of codes.

    Raises
    ------
    CorruptFileError
        The columns are others, a value is null, or a partition does not exist.
    """
    if not {ROW_ID, PARTITION_COLUMN, PQ_COLUMN} <= set(batch.schema.names):
        raise CorruptFileError(f"{name}: has the columns {batch.schema.names}, not partitions and codes")
    ids, places, codes = (batch.column(each) for each in (ROW_ID, PARTITION_COLUMN, PQ_COLUMN))
    if (ids.type, places.type) != (pa.uint64(), pa.uint32()) or not pa.types.is_fixed_size_list(codes.type):
        raise CorruptFileError(f"{name}: has columns of {ids.type}, {places.type} and {codes.type}")
    if codes.type.value_type != pa.uint8():
        raise CorruptFileError(f"{name}: has codes of {codes.type}")
    if ids.null_count or places.null_count or codes.null_count or codes.flatten().null_count:
        raise CorruptFileError(f"{name}: there are nulls in it")
    numbers = np.asarray(places)
    if len(numbers) and int(numbers.max()) >= partitions:
        raise CorruptFileError(f"{name}: partition {int(numbers.max())} does not exist: there are {partitions}")
    return numbers.astype(np.int32), {ROW_ID: np.asarray(ids), PQ_COLUMN: _matrix(codes)}


def _grouped(number: int, part: dict[str, NDArray[Any]]) -> pa.RecordBatch:
    """Return one row with the rows of a partition."""
    count = len(part[ROW_ID]) if part else 0
    if not part:
        raise InvalidInputError("the files have no rows to group")
    code = pa.list_(pa.uint8(), part[PQ_COLUMN].shape[1])
    fields = [
        pa.field(ROW_ID, pa.uint64()),
        pa.field(PARTITION_COLUMN, pa.uint32()),
        pa.field(PQ_COLUMN, code, nullable=False),
    ]
    arrays = [pa.array(part[ROW_ID]), pa.array(np.full(count, number, np.uint32)), _lists(part[PQ_COLUMN])]
    rows = pa.StructArray.from_arrays(arrays, fields=fields)
    lists = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), rows)
    return pa.RecordBatch.from_arrays([lists], ["partitions"])


def _rows(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """Return the rows of partitions."""
    column = batch.column(0)
    if batch.schema.names != ["partitions"] or not pa.types.is_list(column.type):
        raise CorruptFileError(f"{name}: has the columns {batch.schema.names}, not partitions")
    rows = column.flatten()
    if not pa.types.is_struct(rows.type) or rows.null_count or column.null_count:
        raise CorruptFileError(f"{name}: partitions are of {rows.type}, or null")
    return pa.RecordBatch.from_struct_array(rows)


def _loss(reader: LanceFileReader) -> float:
    text = (reader.metadata().schema.metadata or {}).get(_LOSS.encode(), b"0")
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return found if math.isfinite(found) else 0.0
