"""Searches in MinHash indices: the rows of a version whose texts share a band with another one."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.index.scalar.minhash_files import MinHashFiles
from lance_dataset.index.scalar.minhash_parameters import MinHashParameters
from lance_dataset.index.scalar.minhash_signing import Signatures, TextSigner, distances, keys_of_bands
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.properties import cached_property
from lance_dataset.read.table_reader import TableReader
from lance_dataset.table.indices.coverage import has_reliable_coverage
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.indices.reuse import find_reuse_index, relocation
from lance_dataset.table.row_addresses import by_fragment, fragments_of, offsets_of

__all__ = ["MinHashIndex", "SimilarRows", "TextPattern", "minhash_index"]

_KIND = "minhashlsh"


@dataclass(frozen=True)
class SimilarRows:
    """Rows with the distances of their texts from another one.

    Attributes
    ----------
    ids : uint64[n]
        Row ids.
    addresses : uint64[n]
        Addresses of the rows.
    distances : float32[n]
        Distances.
    """

    ids: NDArray[np.uint64]
    addresses: NDArray[np.uint64]
    distances: NDArray[np.float32]

    def take(self, places: NDArray[Any]) -> SimilarRows:
        """Return rows by their positions, or by a mask."""
        return SimilarRows(self.ids[places], self.addresses[places], self.distances[places])

    def ordered(self) -> SimilarRows:
        """Return the rows in the order of their distances, and then of their ids."""
        return self.take(np.lexsort((self.ids, self.distances)))

    @staticmethod
    def concat(parts: list[SimilarRows]) -> SimilarRows:
        """Return the rows of several parts."""
        return SimilarRows(
            np.concatenate([np.empty(0, np.uint64), *(part.ids for part in parts)]),
            np.concatenate([np.empty(0, np.uint64), *(part.addresses for part in parts)]),
            np.concatenate([np.empty(0, np.float32), *(part.distances for part in parts)]),
        )


class TextPattern:
    """Text that others are compared with.

    Parameters
    ----------
    text
        The text.
    parameters
        Parameters of the index.

    Attributes
    ----------
    signature
        Its signature; None if it has no tokens, so that no text is similar.
    """

    def __init__(self, text: str, parameters: MinHashParameters) -> None:
        self._parameters = parameters
        self._signer = TextSigner(parameters)
        numbers, made = self._signer.sign(pa.array([text], pa.large_string()))
        self.signature: Signatures | None = made[0] if len(numbers) else None

    def compare(self, texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the numbers of the texts that share a band with this one, and their distances."""
        if self.signature is None:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        numbers, made = self._signer.sign(texts)
        bands = self._parameters.num_bands
        keys = keys_of_bands(made, bands)
        near = (keys == keys_of_bands(self.signature.reshape(1, -1), bands)).any(axis=1)
        return numbers[near], distances(made[near], self.signature)


class MinHashIndex:
    """One MinHash index of a version, with all of its segments.

    Attributes
    ----------
    segments
        Segments that cover fragments of the version.
    parameters
        Its parameters.
    """

    def __init__(self, segments: list[Segment]) -> None:
        first = segments[0]
        details = first.metadata.details
        self.parameters = MinHashParameters.of_details(
            b"" if details is None else details.value, first.reader.manifest.path
        )
        reuse = find_reuse_index(first.reader.manifest)
        moved = None if reuse is None else relocation(reuse, first.reader.locator)
        covering = [segment for segment in segments if segment.fragment_ids]
        self.segments = tuple(_OpenSegment(segment, self.parameters, moved) for segment in covering)

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """Fragments that it covers."""
        return frozenset().union(*(segment.fragment_ids for segment in self.segments))

    def find(self, pattern: TextPattern) -> SimilarRows:
        """Return the live rows, in fragments that it covers, whose texts share a band with another one.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """
        if pattern.signature is None:
            return SimilarRows.concat([])
        return SimilarRows.concat([segment.find(pattern.signature) for segment in self.segments])


class _OpenSegment:
    def __init__(self, segment: Segment, parameters: MinHashParameters, moved: Relocation | None) -> None:
        self._segment = segment
        self._parameters = parameters
        self._moved = moved
        self.fragment_ids = segment.fragment_ids

    @cached_property
    def _files(self) -> MinHashFiles:
        details = self._segment.metadata.details
        where = self._segment.folder.uri("")
        known = MinHashParameters.of_details(b"" if details is None else details.value, where)
        if known != self._parameters:
            raise CorruptFileError(f"{where}: the segments of the index {self._segment.name!r} have other parameters")
        return MinHashFiles(self._segment.folder, known)

    def find(self, signature: Signatures) -> SimilarRows:
        """Return the live rows, in fragments that the segment covers, that share a band with a signature."""
        rows, apart = self._files.find(signature)
        reader = self._segment.reader
        if reader.manifest.uses_stable_row_ids:
            addresses, known = reader.addresses_of_ids(rows)
        elif self._moved is not None:
            addresses, gone = self._moved.locate(rows)
            known = ~gone
        else:
            addresses, known = rows, np.ones(len(rows), bool)
        owners = fragments_of(addresses)
        known &= np.isin(owners, np.array(sorted(self.fragment_ids), np.uint64))
        found = SimilarRows(rows, addresses, apart).take(known)
        self._check_inside(found.addresses)
        if not reader.manifest.uses_stable_row_ids:
            found = SimilarRows(found.addresses, found.addresses, found.distances)
        return found.take(reader.is_live(found.addresses)) if len(found.ids) else found

    def _check_inside(self, addresses: NDArray[np.uint64]) -> None:
        """Raise CorruptFileError if an address is behind the last row of its fragment."""
        reader = self._segment.reader
        for fragment_id, mine in by_fragment(addresses):
            fragment = reader.fragment(fragment_id)
            last = int(offsets_of(addresses[mine]).max())
            if fragment is None or last >= fragment.physical_rows:
                where = self._segment.folder.uri("")
                raise CorruptFileError(f"{where}: refers to row {last} of fragment {fragment_id}, which has fewer rows")


class _MinHashIndices:
    """MinHash indices of a version, by the ids of their columns. Its reader keeps them; a pickle leaves them out."""

    def __init__(self) -> None:
        self.by_field: dict[int, MinHashIndex | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _MinHashIndices, ()


def minhash_index(reader: TableReader, field_id: int) -> MinHashIndex | None:
    """Return the first MinHash index of a column of a version, None without one. It is kept as long as the reader.

    Raises
    ------
    CorruptFileError
        The list of indices, or the details of the index, cannot be read.
    """
    manifest = reader.manifest
    if not manifest.index_section or not has_reliable_coverage(manifest):
        return None
    known = reader.companions.setdefault(_MinHashIndices, _MinHashIndices())
    assert isinstance(known, _MinHashIndices)
    if field_id not in known.by_field:
        segments = [each for each in index_segments(weakref.proxy(reader)) if each.kind == _KIND]
        mine = [each for each in segments if tuple(each.metadata.fields) == (field_id,)]
        named = [each for each in mine if each.name == mine[0].name]
        known.by_field[field_id] = MinHashIndex(named) if named else None
    return known.by_field[field_id]
