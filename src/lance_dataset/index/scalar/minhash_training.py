"""Training of MinHash indices: the signatures of all texts, and the sorted keys of their bands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.index.files import WRITTEN_VERSION, IndexFolder
from lance_dataset.index.scalar import minhash
from lance_dataset.index.scalar.minhash_files import signature_batches
from lance_dataset.index.scalar.minhash_parameters import MinHashParameters
from lance_dataset.index.scalar.minhash_signing import Signatures, TextSigner, keys_of_bands
from lance_dataset.index.scalar.sorting import ROWS, VALUES, entry_schema, sorted_entries
from lance_dataset.index.trainer import OldSegment, Trainer, Training
from lance_dataset.read.spool import Spool
from lance_dataset.types.schema import Schema

__all__ = ["TRAINER"]

_Rows: TypeAlias = NDArray[np.uint64]
#: Rows and their signatures.
_Signed: TypeAlias = tuple[_Rows, Signatures]

_PAGE_ROWS: Final = 4096
_LAYOUT_VERSION: Final = "0"
_PLAIN: Final = {"lance-encoding:compression": "none"}
_FULL_ZIP: Final = {**_PLAIN, "lance-encoding:structural-encoding": "fullzip"}
_BANDS_SCHEMA: Final = pa.schema(
    [
        pa.field(minhash.BAND_KEY, pa.uint64(), nullable=False, metadata=_PLAIN),
        pa.field(minhash.DOCUMENT, pa.uint32(), nullable=False, metadata=_PLAIN),
    ]
)
_ENTRIES: Final = entry_schema(pa.uint64())


def _specialized(given: Mapping[str, Any]) -> Trainer:
    known = MinHashParameters.of(given)
    return replace(
        TRAINER,
        write=lambda work: _write(known, _signed(known, work.entries), work),
        extend=lambda old, work: _write(known, _all(known, old, work.entries), work),
    )


def _restored(details: bytes, folder: IndexFolder) -> Mapping[str, Any]:
    known = MinHashParameters.of_details(details, folder.uri(""))
    return {
        "num_hashes": known.num_hashes,
        "num_bands": known.num_bands,
        "shingle_size": known.shingle_size,
        "tokenizer": known.tokenizer,
    }


def _signed(known: MinHashParameters, entries: Iterable[pa.RecordBatch]) -> Iterator[_Signed]:
    """Yield the rows of texts that have tokens, and their signatures."""
    signer = TextSigner(known)
    for batch in entries:
        numbers, made = signer.sign(batch.column(VALUES))
        yield batch.column(ROWS).to_numpy()[numbers], made


def _all(known: MinHashParameters, old: Sequence[OldSegment], entries: Iterable[pa.RecordBatch]) -> Iterator[_Signed]:
    """Yield the rows of old segments that they still cover, then new ones."""
    for segment in old:
        for rows, made in signature_batches(segment.folder, known):
            covered = segment.is_covered(rows)
            yield rows[covered], made[covered]
    yield from _signed(known, entries)


def _write(known: MinHashParameters, signed: Iterable[_Signed], work: Training) -> bytes:
    details = known.details
    metadata = {minhash.DETAILS: details.hex(), minhash.LAYOUT: _LAYOUT_VERSION}
    kind = pa.list_(pa.field("item", pa.uint16()), known.num_hashes)
    schema = pa.schema(
        [
            pa.field(minhash.ROW_ID, pa.uint64(), nullable=False),
            pa.field(minhash.SIGNATURE, kind, nullable=False, metadata=_FULL_ZIP),
        ]
    )
    with Spool(_ENTRIES, work.memory_limit // 4) as bands:

        def documents() -> Iterator[pa.RecordBatch]:
            number = 0
            for rows, made in signed:
                if not len(rows):
                    continue
                if number + len(rows) > minhash.MAX_DOCUMENTS:
                    raise InvalidInputError(f"a segment of a MinHash index has at most {minhash.MAX_DOCUMENTS} texts")
                bands.add(_entries(made, number, known.num_bands))
                number += len(rows)
                values = pa.FixedSizeListArray.from_arrays(pa.array(made.ravel()), type=kind)
                yield pa.RecordBatch.from_arrays([pa.array(rows), values], schema=schema)
            metadata[minhash.DOCUMENTS] = str(number)

        shared = dict(metadata)
        work.target.write(minhash.SIGNATURES, Schema.from_arrow(schema), WRITTEN_VERSION, documents(), shared)
        bands.seal()
        metadata[minhash.PAGE_ROWS] = str(_PAGE_ROWS)
        buffers: dict[str, bytes] = {}
        ordered = _ordered(sorted_entries(bands.batches(), pa.uint64(), work.memory_limit // 2), buffers)
        work.target.write(minhash.BANDS, Schema.from_arrow(_BANDS_SCHEMA), WRITTEN_VERSION, ordered, metadata, buffers)
    return details


def _entries(signatures: Signatures, first: int, num_bands: int) -> pa.RecordBatch:
    """Return the band keys of documents with the numbers of these, the keys of each band together."""
    keys = keys_of_bands(signatures, num_bands).T.ravel()
    documents = np.tile(np.arange(first, first + len(signatures), dtype=np.uint64), num_bands)
    return pa.RecordBatch.from_arrays([pa.array(keys), pa.array(documents)], schema=_ENTRIES)


def _ordered(entries: Iterable[pa.RecordBatch], buffers: dict[str, bytes]) -> Iterator[pa.RecordBatch]:
    """Yield entries in the order of their keys and documents; store the last key of every page in `buffers`."""
    ends = minhash.PageEnds(_PAGE_ROWS)
    kept: tuple[_Rows, _Rows] = np.empty(0, np.uint64), np.empty(0, np.uint64)
    for batch in entries:
        keys = np.concatenate([kept[0], batch.column(VALUES).to_numpy()])
        documents = np.concatenate([kept[1], batch.column(ROWS).to_numpy()])
        # Entries of the last key may go on in the next batch.
        done = int(np.searchsorted(keys, keys[-1])) if len(keys) else 0
        kept = keys[done:], documents[done:]
        if done:
            yield _sorted(keys[:done], documents[:done], ends)
    if len(kept[0]):
        yield _sorted(*kept, ends)
    buffers[minhash.PAGE_TABLE] = ends.encode()


def _sorted(keys: _Rows, documents: _Rows, ends: minhash.PageEnds) -> pa.RecordBatch:
    """Return entries, which are in the order of their keys, also in that of the documents of a key."""
    if ((keys[1:] == keys[:-1]) & (documents[1:] < documents[:-1])).any():
        documents = documents[np.lexsort((documents, keys))]
    ends.add(keys)
    return pa.RecordBatch.from_arrays([pa.array(keys), pa.array(documents.astype(np.uint32))], schema=_BANDS_SCHEMA)


def _unspecialized(work: Training) -> bytes:
    return _write(MinHashParameters.of({}), _signed(MinHashParameters.of({}), work.entries), work)


def _fits(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


TRAINER: Final = Trainer(
    "MINHASHLSH",
    "/lance.index.pb.MinHashLshIndexDetails",
    _fits,
    "str or large_str",
    _unspecialized,
    misfit=InvalidInputError,
    specialize=_specialized,
    restore=_restored,
)
