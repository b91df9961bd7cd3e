"""Segments of indices: build them apart, merge them, publish them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lance_dataset.api.dataset.index_arguments import (
    checked_id,
    checked_kind,
    checked_limit,
    checked_name,
    keyword_parameters,
    one_column,
)
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.read.shown import Shown
from lance_dataset.records.index import Index
from lance_dataset.records.index_config import IndexConfig

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["IndexSegments"]

#: Kinds of indices that could once be built by several workers as one.
_MERGED_KINDS = ("BTREE", "INVERTED", "IVF_FLAT", "IVF_PQ", "IVF_SQ", "VECTOR")


class IndexSegments(Shown):
    """Segments of indices that several workers build, and one process commits."""

    def create_index_uncommitted(
        self,
        column: str | Sequence[str],
        index_type: str | IndexConfig,
        name: str | None = None,
        metric: str = "L2",
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
        rabitq_model: str | None = None,
        memory_limit: int | None = None,
        **kwargs: Any,
    ) -> Index:
        """Build a segment of an index from some fragments of the open version, without a commit.

        Any process that can write to the dataset may build one. `commit_existing_index_segments` publishes them.

        Parameters
        ----------
        column, index_type, name, memory_limit
            See `create_scalar_index`, or `create_index` for indices of vectors.
        replace
            True for a name that an index of the column has already.
        fragment_ids
            Fragments to index.
        index_uuid
            Id of the segment; None for a new one.
        metric, num_partitions, num_sub_vectors, target_partition_size, ivf_centroids, pq_codebook
            Parameters of indices of vectors, see `create_index`. A segment trains what is not given.
        accelerator, ivf_centroids_file, precomputed_partition_dataset, storage_options, skip_transpose
            Parameters of indices of vectors, see `create_index`.
        streaming_sample_rate, streaming_coreset_rate, streaming_refine_passes
            Parameters of indices of vectors, see `create_index`.
        rabitq_model
            Rotation of IVF_RQ to use, as segments need it to be merged: JSON text, the ``storage_metadata`` of the file
            ``auxiliary.idx`` of another segment. None to draw one.
        index_cache_size, shuffle_partition_batches, shuffle_partition_concurrency, filter_nan, train
            Ignored.
        **kwargs
            Parameters of full-text indices, see `create_scalar_index`.

        Returns
        -------
        Index
            The segment. Its files are durable.

        Raises
        ------
        ValueError
            No fragments are given, or one does not exist.
        KeyError, TypeError, NotImplementedError, RuntimeError
            The index does not fit the table, see `create_scalar_index`.
        """
        from lance_dataset.api.dataset.vector_arguments import VECTOR_KINDS, part_parameters, vector_parameters
        from lance_dataset.changes.indexing.create_index import NewIndex
        from lance_dataset.changes.indexing.publish_segments import build_segment
        from lance_dataset.index.vector.training.trainer import vector_trainer

        if not fragment_ids:
            raise InvalidInputError("fragment_ids must name the fragments to index")
        wanted: NewIndex
        if isinstance(index_type, str) and index_type.upper() in VECTOR_KINDS:
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
                "rabitq_model": rabitq_model,
                **kwargs,
            }
            described = part_parameters(vector_parameters(index_type, metric, given), self.snapshot, fragment_ids)
            wanted = NewIndex(one_column(column), vector_trainer(described), checked_name(name), bool(replace))
            limit = checked_limit(memory_limit)
        else:
            kind = checked_kind(index_type)
            parameters, limit = keyword_parameters(kind, kwargs, memory_limit)
            wanted = NewIndex(one_column(column), kind, checked_name(name), bool(replace), parameters)
        segment_id = None if index_uuid is None else checked_id(index_uuid)
        built = build_segment(self.snapshot, wanted, list(fragment_ids), segment_id=segment_id, memory_limit=limit)
        return Index.from_table(built)

    def extend_index_uncommitted(
        self, index_name: str, fragment_ids: Sequence[int], *, memory_limit: int | None = None
    ) -> Index:
        """Build one more segment of an index that exists, from fragments that it does not cover, without a commit.

        The segment has the parameters of the index, and the models of its newest segment. So it is what
        ``optimize.optimize_indices(num_indices_to_merge=0)`` adds, built where this is called.
        `commit_existing_index_segments` publishes it.

        Parameters
        ----------
        index_name
            Name of the index.
        fragment_ids
            Fragments to index.
        memory_limit
            See `create_scalar_index`.

        Returns
        -------
        Index
            The segment. Its files are durable.

        Raises
        ------
        InvalidInputError
            No fragments are given, one does not exist or is covered already, or there is no such index.
        UnsupportedError
            This release does not build indices of its kind.
        """
        from lance_dataset.changes.indexing.publish_segments import build_segment_like

        name = checked_name(index_name)
        if name is None:
            raise TypeError("index_name must be text")
        if not fragment_ids:
            raise InvalidInputError("fragment_ids must name the fragments to index")
        limit = checked_limit(memory_limit)
        return Index.from_table(build_segment_like(self.snapshot, name, list(fragment_ids), memory_limit=limit))

    def merge_existing_index_segments(self, segments: Sequence[Index]) -> Index:
        """Build one segment of the fragments of several segments, without a commit.

        The fragments are read again in the open version.

        Parameters
        ----------
        segments
            Segments of one index, committed or not.

        Raises
        ------
        ValueError
            There are no segments, they are of different columns or kinds, or two cover the same fragment.
        UnsupportedError
            This release does not build indices of their kind.
        """
        from lance_dataset.changes.indexing.publish_segments import merge_segments

        return Index.from_table(merge_segments(self.snapshot, [each.to_table() for each in _checked(segments)]))

    def commit_existing_index_segments(self, index_name: str, column: str, segments: Sequence[Index]) -> Self:
        """Publish segments as an index, in one commit, and move this handle to the new version.

        Segments of an existing index of the name stay, unless the new ones cover all of their fragments.

        Parameters
        ----------
        index_name
            Name of the index.
        column
            Name of the indexed column.
        segments
            The segments, which must not overlap.

        Returns
        -------
        LanceDataset
            This dataset.

        Raises
        ------
        ValueError
            There are no segments, they are of another column or of different kinds, two cover the same fragment, a
            segment of the index would be covered in part, or the column was rewritten since they were built.
        CommitConflictError
            Other writers changed the rows or the indices, and the retries ran out.
        """
        from lance_dataset.changes.indexing.publish_segments import publish_segments

        name = checked_name(index_name)
        if name is None:
            raise TypeError("index_name must be text")
        records = [each.to_table() for each in _checked(segments)]
        self.show(publish_segments(self.snapshot, name, one_column(column), records))
        return self

    def commit_index_segments_together(self, segments: Mapping[str, Sequence[Index]]) -> Self:
        """Publish segments of several indices, in one commit, and move this handle to the new version.

        Parameters
        ----------
        segments
            Segments by the name of their index. Each index follows the rules of `commit_existing_index_segments`.

        Returns
        -------
        LanceDataset
            This dataset.

        Raises
        ------
        ValueError
            As for `commit_existing_index_segments`, for any of the indices. Nothing is published then.
        CommitConflictError
            Other writers changed the rows or the indices, and the retries ran out.
        """
        from lance_dataset.changes.indexing.publish_segments import publish_together

        if not isinstance(segments, Mapping):
            raise TypeError(f"segments must be a dict of lists by name, not {type(segments).__name__}")
        records = {}
        for name, mine in segments.items():
            if checked_name(name) is None:
                raise TypeError("the names of indices must be text")
            records[name] = [each.to_table() for each in _checked(mine)]
        self.show(publish_together(self.snapshot, records))
        return self

    def merge_index_metadata(
        self,
        index_uuid: str,
        index_type: str,
        batch_readhead: int | None = None,
        progress_callback: Callable[[object], object] | None = None,
    ) -> None:
        """Finish the files of a full-text index that several workers have built with `create_scalar_index`.

        A commit of `LanceOperation.CreateIndex` publishes it. Segments of indices of any kind are built with
        `create_index_uncommitted`, merged with `merge_existing_index_segments` and published with
        `commit_existing_index_segments` instead.

        Parameters
        ----------
        index_uuid
            Id of the index.
        index_type
            Its kind.
        batch_readhead, progress_callback
            Ignored.

        Raises
        ------
        ValueError
            Indices of this kind are built as segments.
        UnsupportedError
            The kind does not have such indices, or is not built by this release.
        """
        kind = index_type.upper()
        if kind not in _MERGED_KINDS:
            known = ", ".join(_MERGED_KINDS)
            raise UnsupportedError(f"Only {known} are supported, received {index_type}")
        if kind == "INVERTED":
            from lance_dataset.changes.indexing.staged_segments import merge_staged_index

            merge_staged_index(self.snapshot, checked_id(index_uuid))
            return
        raise InvalidInputError(
            f"{kind} distributed indexing no longer supports merge_index_metadata; build segments with "
            "create_index_uncommitted, optionally merge groups with merge_existing_index_segments, and publish them "
            "with commit_existing_index_segments"
        )

    def prewarm_index(
        self,
        name: str,
        *,
        with_position: bool = False,
        index_segments: Iterable[str | uuid.UUID] | None = None,
    ) -> None:
        """Open the files of an index now instead of at its first use.

        Parameters
        ----------
        name
            Name of the index.
        with_position
            Ignored: a parameter of full-text indices.
        index_segments
            Ids of the segments to open; None for all.

        Raises
        ------
        RuntimeError
            There is no index of this name (an `IndexNotFoundError`).
        UnsupportedError
            Scans of this release do not use indices of its kind.
        """
        from lance_dataset.index.open_segments import table_indices
        from lance_dataset.index.segments import segments_named
        from lance_dataset.index.text.searching.text_index import text_indices
        from lance_dataset.index.vector.searching.open_indices import vector_indices

        named = segments_named(self.snapshot.reader, name)
        chosen = None if index_segments is None else {checked_id(each) for each in index_segments}
        indices = table_indices(self.snapshot)
        found = [] if indices is None else [each for many in indices.by_value.values() for each in many]
        mine = [each for each in found if each.name == name]
        of_vectors = vector_indices(self.snapshot.reader)
        vectors = [] if of_vectors is None else [each for many in of_vectors.by_field.values() for each in many]
        ahead = [each for each in vectors if each.name == name]
        for index in ahead:
            index.prewarm(chosen)
        fields = {tuple(segment.metadata.fields) for segment in named}
        texts = [
            each for (field, *_) in fields for each in text_indices(self.snapshot.reader, field) if each.name == name
        ]
        for text in texts:
            text.prewarm()
        if not mine and not ahead and not texts and any(segment.fragment_ids for segment in named):
            raise UnsupportedError(f"scans of this release do not use the index {name!r}, so it cannot be opened ahead")
        for each in mine:
            each.prewarm(chosen)


def _checked(segments: object) -> Sequence[Index]:
    if not isinstance(segments, list | tuple) or not all(isinstance(each, Index) for each in segments):
        raise TypeError("segments must be a list of Index")
    return segments
