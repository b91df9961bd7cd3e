"""Training of full-text indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from lance_dataset.errors import InvalidIndexError, InvalidInputError
from lance_dataset.index.files import WRITTEN_VERSION, IndexFolder
from lance_dataset.index.text.layout import METADATA_FILE, InvertedLayout, PartitionFiles, metadata_batch
from lance_dataset.index.text.training.documents import DocumentReader, is_json, is_list, is_text
from lance_dataset.index.text.training.parameters import InvertedParameters
from lance_dataset.index.text.training.partition import NewPartition
from lance_dataset.index.text.training.takeover import take_over
from lance_dataset.index.trainer import OldSegment, Trainer, Training
from lance_dataset.types.schema import Schema

__all__ = ["TRAINER", "parameters_of_keywords"]

#: Key of restored parameters.
_RESTORED: Final = "restored"
#: Share of the memory limit that the documents of a partition take; the rest is for reading and encoding.
_SHARE: Final = 2
#: Partitions below this size would make searches slow, whatever the memory limit.
_LEAST_BYTES: Final = 8 << 20
#: Texts that are read together: few, because some of them are large.
_BATCH_ROWS: Final = 1 << 12
_WANTED: Final = "string, large string or list of strings, or json"
_URL: Final = "/lance.table.InvertedIndexDetails"
#: Extension types of JSON documents.
_JSON_NAMES: Final = ("arrow.json", "lance.json")


def parameters_of_keywords(given: Mapping[str, Any], *, by_element: bool) -> Mapping[str, Any]:
    """Return the parameters for `TRAINER` that a user gives as keywords of a call.

    Parameters
    ----------
    given
        The keywords.
    by_element
        True if each element of a list is a document.

    Raises
    ------
    TypeError, InvalidInputError
        See `InvertedParameters.of_keywords`.
    """
    return {_RESTORED: InvertedParameters.of_keywords(given, by_element=by_element)}


def _specialized(given: Mapping[str, Any]) -> Trainer:
    known = given.get(_RESTORED)
    if isinstance(known, InvertedParameters):
        return _trainer(known)
    try:
        return _trainer(InvertedParameters.of(given))
    except InvalidInputError as error:
        raise InvalidIndexError(str(error)) from None


def _trainer(known: InvertedParameters) -> Trainer:
    return Trainer(
        "INVERTED",
        _URL,
        _fits,
        _WANTED,
        lambda work: _write(known, (), work),
        version=known.index_version,
        stable_version=known.index_version,
        extend=lambda old, work: _write(known, old, work),
        can_extend=lambda folder: _can_extend(known, folder),
        fits_field=lambda field: _fits_field(known, field),
        specialize=_specialized,
        restore=_restored,
        batch_rows=_BATCH_ROWS,
        name_suffix="_list_element" if known.by_element else "",
    )


def _restored(details: bytes, folder: IndexFolder) -> Mapping[str, Any]:
    return {_RESTORED: InvertedParameters.of_index(details, folder)}


def _fits(kind: pa.DataType) -> bool:
    return is_text(kind) or is_list(kind)


def _is_json(field: pa.Field) -> bool:
    """Return True for columns of JSON documents, whose type may be that of their storage."""
    if isinstance(field.type, pa.BaseExtensionType):
        return field.type.extension_name in _JSON_NAMES
    name = (field.metadata or {}).get(b"ARROW:extension:name", b"")
    return is_json(field.type) and name.decode("utf-8", "replace") in _JSON_NAMES


def _fits_field(known: InvertedParameters, field: pa.Field) -> bool:
    fits = _fits(field.type) or _is_json(field)
    if known.by_element and fits and not is_list(field.type):
        raise InvalidInputError(
            f"FTS field path {field.name!r} has no List layer and cannot use ListElement document granularity"
        )
    return fits


def _can_extend(known: InvertedParameters, folder: IndexFolder) -> bool:
    """Return True if the partitions of an index have the layout of new ones."""
    if METADATA_FILE not in folder.names():
        return False
    found = InvertedLayout.read(folder)
    packed = found.packed_positions or not known.with_position or known.format_version == 1
    return found.fst and packed and found.blocks == known.blocks and not len(found.ignored_fragments)


def _write(known: InvertedParameters, old: Sequence[OldSegment], work: Training) -> bytes:
    count = take_over(old, work.target)
    writer = _Writer(known, work, count)
    writer.write()
    batch = metadata_batch()
    metadata = known.index_metadata(list(range(writer.count)), is_json=is_json(work.kind))
    work.target.write(METADATA_FILE, Schema.from_arrow(batch.schema), WRITTEN_VERSION, [batch], metadata)
    return known.details


class _Writer:
    """Writes the partitions of new documents.

    Parameters
    ----------
    known
        Parameters of the index.
    work
        The documents, and where to write.
    count
        Number of partitions that exist.
    """

    def __init__(self, known: InvertedParameters, work: Training, count: int) -> None:
        self._known = known
        self._work = work
        self._reader = DocumentReader(known, work.kind, "the indexed column")
        self._partition = NewPartition(known)
        self.count = count

    def write(self) -> None:
        """Write all partitions."""
        most = max(self._work.memory_limit // _SHARE, _LEAST_BYTES)
        for entries in self._work.entries:
            for documents in self._reader.read(entries):
                self._partition.add(documents)
                size = self._partition.nbytes() + self._reader.nbytes
                if size >= most or self._partition.is_full(self._reader.table.count):
                    self._flush()
        self._flush()

    def _flush(self) -> None:
        """Write the documents so far as a partition, unless they have no tokens."""
        partition, self._partition = self._partition, NewPartition(self._known)
        if partition.num_tokens:
            partition.write(self._work.target, PartitionFiles(self.count), self._reader.table)
            self.count += 1
        del partition
        self._reader.forget()


TRAINER: Final = _trainer(InvertedParameters.of({}))
