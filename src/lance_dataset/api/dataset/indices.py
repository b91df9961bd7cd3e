"""Indices of a dataset: create, list, describe and drop them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lance_dataset.api.dataset.index_arguments import (
    checked_id,
    checked_kind,
    checked_limit,
    checked_name,
    keyword_parameters,
    one_column,
)
from lance_dataset.errors import InvalidInputError
from lance_dataset.read.shown import Shown
from lance_dataset.records.index_config import DocumentGranularity, IndexConfig
from lance_dataset.records.index_description import IndexDescription, IndexInformation, IndexSegmentDescription
from lance_dataset.records.index_progress import IndexProgress

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

    from lance_dataset.api.vector_models import IvfModel
    from lance_dataset.index.segments import Segment
    from lance_dataset.read.snapshot import Snapshot

__all__ = ["Indexed"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


class Indexed(Shown):
    """Indices of the open version. All changes keep them right.

    Filters of scans, counts, deletes and updates use scalar indices where that is cheaper than reading the columns.
    ``LANCE_CHECK_INDICES=1`` compares every answer with the scan without it.
    """

    @property
    def has_index(self) -> bool:
        """True if the open version has an index."""
        return bool(_segments(self.snapshot))

    def list_indices(self) -> list[IndexInformation]:
        """List the segments of all indices of the open version, sorted by name.

        Indices of unknown kinds or later format versions are left out.

        Raises
        ------
        CorruptFileError
            The list of indices cannot be read.
        """
        segments = sorted(_segments(self.snapshot), key=lambda segment: segment.name)
        return [_information(segment) for segment in segments]

    def describe_indices(self) -> list[IndexDescription]:
        """Describe the indices of the open version, sorted by name.

        Indices of unknown kinds or later format versions are left out.

        Raises
        ------
        CorruptFileError
            The list of indices cannot be read.
        """
        by_name: dict[str, list[Segment]] = {}
        for segment in _segments(self.snapshot):
            by_name.setdefault(segment.name, []).append(segment)
        return [_description(name, by_name[name]) for name in sorted(by_name)]

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """Return the statistics of an index; the same as ``stats.index_stats``.

        Raises
        ------
        KeyError
            There is no index of this name.
        """
        from lance_dataset.index.statistics import index_statistics

        return index_statistics(self.snapshot, index_name)

    def centroids(self, *, index_name: str | None = None, column: str | None = None) -> pa.FixedSizeListArray:
        """Return the centroids of a vector index, those of its first segment if it has several.

        Parameters
        ----------
        index_name
            Name of the index.
        column
            Name of its column, if the index is not named.

        Returns
        -------
        pyarrow.FixedSizeListArray
            A vector for each partition.

        Raises
        ------
        ValueError
            There is no index of the name, it has no centroids, or nothing is given.
        KeyError
            The column has no vector index (an `IndexNotFoundError`).
        """
        from lance_dataset.api.dataset.vector_models import centroids_of

        return centroids_of(self.snapshot, index_name, column)

    def get_ivf_model(self, index_name: str) -> IvfModel:
        """Return centroids and metric of a vector index, those of its first segment if it has several.

        Parameters
        ----------
        index_name
            Name of the index.

        Raises
        ------
        ValueError
            There is no index of the name, or it has no centroids.
        """
        from lance_dataset.api.dataset.vector_models import ivf_model_of

        return ivf_model_of(self.snapshot, index_name)

    def create_scalar_index(
        self,
        column: str | Sequence[str],
        index_type: str | IndexConfig,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        fragment_ids: Sequence[int] | None = None,
        index_uuid: str | None = None,
        progress_callback: Callable[[IndexProgress], object] | None = None,
        format_version: int | None = None,
        document_granularity: DocumentGranularity = DocumentGranularity.ROW,
        memory_limit: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Build a scalar index of a column of the newest version, and move this handle to the new version.

        Parameters
        ----------
        column
            Name of the column, dotted for a field of a struct; or a list of one name.
        index_type
            ``BTREE`` or ``BITMAP`` for a column of numbers, texts, bytes, booleans or times, ``LABEL_LIST`` for
            lists of them, ``INVERTED`` (or ``FTS``) for full-text search in texts, lists of texts or JSON documents,
            and others, in any case; or an `lance_dataset.indices.IndexConfig` with parameters.
        name
            Name of the index, by default the column's with ``_idx`` added.
        replace
            False for an error if the column has an index of this name.
        train
            False for an empty index, which the first optimization trains.
        fragment_ids
            Fragments of one part of a full-text index, whose files are written but not committed; the other parts are
            built with the same `index_uuid`, and `merge_index_metadata` makes an index of them. None for the whole
            index. Other kinds are built in parts with `create_index_uncommitted`.
        index_uuid
            Id of the index whose part is built.
        progress_callback
            Is called with an `IndexProgress` as rows are read.
        format_version
            Version of the layout of full-text indices, 1 to 3; None for 2, or 3 where the parameters need it. Other
            kinds ignore it.
        document_granularity
            ``LIST_ELEMENT`` for a full-text index of lists whose documents are the elements, not the rows.
        memory_limit
            Maximum number of bytes to sort with, approximately; None for a quarter of the memory of the machine. Above
            it, sorted runs go to temporary files. The limit of full-text indices is given in MiB; above it, the
            index gets several partitions.
        **kwargs
            Parameters of full-text indices: ``with_position`` (False; True for phrase queries), ``base_tokenizer``
            (``simple``, ``whitespace``, ``raw``, ``ngram``, ``code``, ``cjk``, ``jieba/default``, ``lindera/NAME``),
            ``language``, ``max_token_length`` (40), ``lower_case``, ``stem``, ``remove_stop_words``,
            ``custom_stop_words``, ``ascii_folding``, ``min_ngram_length``, ``max_ngram_length``, ``prefix_only``,
            ``block_size`` (128 or 256), and the flags of the tokenizer for code. Ignored for other kinds, as in the
            reference: pass parameters in an `IndexConfig`.

        Raises
        ------
        KeyError
            The column does not exist.
        TypeError
            The type of the column does not fit the kind of index.
        NotImplementedError
            The kind is not known or not built by this release, or there are several columns (an `UnsupportedError`).
        RuntimeError
            The name belongs to an index that must not be replaced, or a parameter is invalid (an `InvalidIndexError`).
        CommitConflictError
            Other writers changed the indexed rows, and the retries ran out.
        """
        from lance_dataset.changes.indexing.create_index import NewIndex, create_index

        kind = checked_kind(index_type)
        has_parts = not isinstance(kind, IndexConfig) and kind.upper() in ("INVERTED", "FTS")
        if (index_uuid is None) != (fragment_ids is None) or (fragment_ids is not None and not has_parts):
            raise InvalidInputError(
                "create_scalar_index builds parts of INVERTED indices only, which need fragment_ids and index_uuid; "
                "use create_index_uncommitted to build a segment"
            )
        given = {**kwargs, "document_granularity": document_granularity}
        if format_version is not None:
            given["format_version"] = format_version
        parameters, limit = keyword_parameters(kind, given, memory_limit)
        wanted = NewIndex(one_column(column), kind, checked_name(name), bool(replace), parameters)
        if fragment_ids is not None:
            from lance_dataset.changes.indexing.staged_segments import stage_segment

            made = checked_id(index_uuid)
            stage_segment(self.snapshot, wanted, list(fragment_ids), made, memory_limit=limit)
            return
        self.show(
            create_index(
                self.snapshot,
                wanted,
                train=bool(train),
                memory_limit=limit,
                progress=progress_callback,
            )
        )

    def create_index(
        self,
        column: str | Sequence[str],
        index_type: str | None = None,
        name: str | None = None,
        metric: str | None = "L2",
        replace: bool = False,
        num_partitions: int | None = None,
        ivf_centroids: object = None,
        pq_codebook: object = None,
        num_sub_vectors: int | None = None,
        accelerator: object = None,
        index_cache_size: int | None = None,
        shuffle_partition_batches: int | None = None,
        shuffle_partition_concurrency: int | None = None,
        ivf_centroids_file: str | None = None,
        precomputed_partition_dataset: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        filter_nan: bool = True,
        train: bool = True,
        fragment_ids: Sequence[int] | None = None,
        index_uuid: str | None = None,
        *,
        target_partition_size: int | None = None,
        streaming_sample_rate: int | None = None,
        streaming_coreset_rate: int | None = None,
        streaming_refine_passes: int | None = None,
        skip_transpose: bool = False,
        progress_callback: Callable[[IndexProgress], object] | None = None,
        num_bits: int | None = None,
        sample_rate: int | None = None,
        max_iters: int | None = None,
        memory_limit: int | None = None,
        **kwargs: Any,
    ) -> Self:
        """Build a vector index of a column of the newest version, and move this handle to the new version.

        Rows whose vector is null or not finite are left out, for the metric cosine also zeros.

        Parameters
        ----------
        column
            Name of a column of fixed-size lists of floats or uint8, or of lists of them; or a list of one name.
        index_type
            ``IVF_FLAT``, ``IVF_PQ``, ``IVF_SQ``, ``IVF_RQ``, or ``IVF_HNSW_FLAT``, ``IVF_HNSW_PQ`` or ``IVF_HNSW_SQ``
            with graphs, in any case; None for plain vectors if they fit in a quarter of the memory of the machine,
            otherwise RaBitQ codes. `describe_indices` has the reason among the
            ``runtime_hints`` of the ``details``.
        name
            Name of the index, by default the column's with ``_idx`` added.
        metric
            ``l2``, ``cosine`` or ``dot`` for floats, ``hamming`` for uint8, ``cosine`` for lists of vectors; None for
            the first of them.
        replace
            True to replace an index of this name.
        num_partitions, target_partition_size
            Number of partitions, or wanted vectors of one. At most one partition for each vector is made, or for each
            `sample_rate` vectors if product quantization has a number of partitions, with a warning if this is less.
        num_sub_vectors, num_bits
            Parts of a vector, and bits of a part (8 or 4), of IVF_PQ; bits of a value (1 to 9, by default 5) of IVF_RQ.
        sample_rate, max_iters
            Vectors for a cluster (256), and maximum number of iterations (50), of the training.
        train
            False for an empty index.
        progress_callback
            Is called with an `IndexProgress` as rows are read.
        memory_limit
            Maximum number of bytes to work with, approximately; None for a quarter of the memory of the machine.
        index_cache_size, shuffle_partition_batches, shuffle_partition_concurrency, filter_nan, storage_options
            Ignored: they do not change the index.
        streaming_sample_rate, streaming_coreset_rate, streaming_refine_passes
            Ignored: above the memory limit, models are trained with a sample anyway.
        ivf_centroids, ivf_centroids_file
            Centroids to use instead of training them: NumPy or Arrow array, or nested lists, [partitions, dimension];
            or a file that `numpy.save` wrote.
        pq_codebook
            Codewords to use with them: NumPy array [num_sub_vectors, 2 ** num_bits, dimension / num_sub_vectors], or
            Arrow array of the same numbers.
        skip_transpose
            True to store codes row by row. Segments of some fragments with given centroids always do: pylance merges
            only such segments.
        accelerator
            ``cuda``, ``mps`` or a `torch.device` that trains the models of IVF_PQ. Other kinds ignore it, with a
            warning.
        precomputed_partition_dataset
            Not supported.
        index_uuid
            Id of the only segment of the index; None for a new one.
        fragment_ids
            Fragments of the open version to index: the files of a segment with the id `index_uuid` are written, and
            nothing is committed. `create_index_uncommitted` also returns what a commit needs.
        **kwargs
            ``rabitq_model`` (see `create_index_uncommitted`) and ``index_file_version`` (``V3``); of graphs ``m``
            (neighbors of a node, 20, and twice as many on the lowest level), ``ef_construction`` (candidates for
            neighbors, 150) and ``max_level`` (levels, 7). Others are ignored with a warning.

        Returns
        -------
        LanceDataset
            This handle.

        Raises
        ------
        KeyError
            The column does not exist.
        TypeError
            The column has no vectors.
        ValueError
            A parameter is out of range, or does not fit the column.
        NotImplementedError
            The kind, or a parameter, is not supported by this release (an `UnsupportedError`).
        RuntimeError
            The name belongs to an index that must not be replaced (an `InvalidIndexError`).
        MemoryLimitError
            The vectors do not fit in the limit.
        CommitConflictError
            Other writers changed the indexed rows, and the retries ran out.
        """
        from lance_dataset.api.dataset.vector_arguments import (
            check_vector_columns,
            default_choice,
            part_parameters,
            vector_parameters,
        )
        from lance_dataset.changes.indexing.create_index import NewIndex, create_index
        from lance_dataset.changes.indexing.publish_segments import build_segment
        from lance_dataset.index.vector.training.trainer import vector_trainer

        given = {
            "num_partitions": num_partitions,
            "ivf_centroids": ivf_centroids,
            "pq_codebook": pq_codebook,
            "num_sub_vectors": num_sub_vectors,
            "accelerator": accelerator,
            "ivf_centroids_file": ivf_centroids_file,
            "precomputed_partition_dataset": precomputed_partition_dataset,
            "storage_options": storage_options,
            "target_partition_size": target_partition_size,
            "streaming_sample_rate": streaming_sample_rate,
            "streaming_coreset_rate": streaming_coreset_rate,
            "streaming_refine_passes": streaming_refine_passes,
            "skip_transpose": skip_transpose,
            "num_bits": num_bits,
            "sample_rate": sample_rate,
            "max_iters": max_iters,
            **kwargs,
        }
        reason = ""
        check_vector_columns(self.snapshot, column, index_type)
        if index_type is None or metric is None:
            index_type, metric, reason = default_choice(self.snapshot, one_column(column), index_type, metric)
        parameters = vector_parameters(index_type, metric, given, reason)
        if fragment_ids:
            parameters = part_parameters(parameters, self.snapshot, fragment_ids)
        wanted = NewIndex(one_column(column), vector_trainer(parameters), checked_name(name), bool(replace))
        limit = checked_limit(memory_limit)
        made = None if index_uuid is None else checked_id(index_uuid)
        if fragment_ids:
            if made is None:
                raise InvalidInputError("index_uuid must name the segment of fragment_ids, which is not committed")
            build_segment(self.snapshot, wanted, list(fragment_ids), segment_id=made, memory_limit=limit)
            return self
        self.show(
            create_index(
                self.snapshot,
                wanted,
                train=bool(train),
                memory_limit=limit,
                progress=progress_callback,
                segment_id=made,
            )
        )
        return self

    def drop_index(self, name: str) -> None:
        """Remove an index from the newest version, in one commit, and move this handle to the new version.

        Older versions keep it. Its files are removed by a cleanup.

        Parameters
        ----------
        name
            Name of the index. All of its segments are dropped, also of kinds that this release does not know.

        Raises
        ------
        RuntimeError
            There is no index of this name (an `IndexNotFoundError`).
        InvalidInputError
            The index belongs to the table itself: fragments or logs depend on it.
        CommitConflictError
            Other writers changed the index, and the retries ran out.
        """
        from lance_dataset.changes.indexing.drop_index import drop_index

        self.show(drop_index(self.snapshot, name))


def _segments(snapshot: Snapshot) -> list[Segment]:
    from lance_dataset.index.segments import index_segments

    return index_segments(snapshot.reader)


def _information(segment: Segment) -> IndexInformation:
    from lance_dataset.index.describing import shown_type

    metadata = segment.metadata
    return {
        "name": segment.name,
        "type": shown_type(segment),
        "uuid": metadata.uuid,
        "fields": list(segment.column_names),
        "version": metadata.dataset_version,
        "fragment_ids": set(segment.recorded),
        "base_id": metadata.base_id,
    }


def _description(name: str, segments: list[Segment]) -> IndexDescription:
    from lance_dataset.index.describing import details_of, shown_type, type_url_of

    first = segments[0]
    sizes = [_size(segment) for segment in segments]
    known = [size for size in sizes if size is not None]
    return IndexDescription(
        name=name,
        index_type=shown_type(first),
        type_url=type_url_of(first),
        num_rows_indexed=sum(segment.num_rows for segment in segments),
        fields=list(first.metadata.fields),
        field_names=list(first.column_names),
        segments=[_segment_description(segment, size) for segment, size in zip(segments, sizes, strict=True)],
        details=details_of(first),
        total_size_bytes=sum(known) if len(known) == len(segments) else None,
    )


def _segment_description(segment: Segment, size: int | None) -> IndexSegmentDescription:
    metadata = segment.metadata
    created = metadata.created_at
    return IndexSegmentDescription(
        uuid=metadata.uuid,
        dataset_version_at_last_update=metadata.dataset_version,
        fragment_ids=set(segment.recorded),
        index_version=metadata.index_version or 0,
        created_at=None if created is None else _EPOCH + dt.timedelta(milliseconds=created),
        size_bytes=size,
        base_id=metadata.base_id,
        covering_fields=list(metadata.covering_fields),
    )


def _size(segment: Segment) -> int | None:
    """Return the bytes of the files of a segment; None for system indices, and where they are not recorded."""
    files = segment.metadata.files
    return sum(file.size_bytes for file in files) if files and not segment.is_system else None
