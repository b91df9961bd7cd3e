"""Check of bitmap, label-list and n-gram indices: sets of rows for each key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.scalar import ngram
from lance_dataset.index.scalar.bitmap import KEYS, LOOKUP, NULL_LISTS, SETS, STATISTICS
from lance_dataset.index.scalar.ngram_tokens import NULLS, is_doubtful, sets_of_texts, tokens_of
from lance_dataset.index.scalar.value_order import order_of
from lance_dataset.index.validating.keyed_rows import Digests, KeyedRows, digests, mixed, shown
from lance_dataset.table.roaring import bitmap_parts
from lance_dataset.table.row_addresses import addresses_in
from lance_dataset.table.row_sets import ROW_SETS, TREEMAPS, SetForm, decode_sets, layout_of_sets

__all__ = ["BitmapContent", "LabelListContent", "NgramContent", "rows_of_keys"]

RowsIn = Callable[[int], int]

#: Bytes of sets that are decoded together, one set at least.
_READ_BYTES: Final = 2 << 20
#: Rows that a fragment can have, and rows that are yielded together.
_MOST: Final = 1 << 32
_TOGETHER: Final = 1 << 20
#: Digest of null lists, which is not that of lists with a null.
_NULL_LIST: Final = np.uint64(0x3C6EF372FE94F82B)
_NULL_LIST_NAME: Final = "a null list"
_LETTERS: Final = " 0123456789abcdefghijklmnopqrstuvwxyz"


def rows_of_keys(
    keys: pa.Array, key_digests: Digests, sets: pa.Array, form: SetForm, rows_in: RowsIn, where: str
) -> Iterator[KeyedRows]:
    """Yield the rows of keys with serialized sets.

    Parameters
    ----------
    keys, key_digests, sets
        The keys, their digests, and their sets.
    form
        Form of the sets.
    rows_in
        Returns the number of rows, deleted ones included, of a fragment whose rows are all in a set.
    where
        Name of the file, for error messages.

    Raises
    ------
    CorruptFileError
        A value is not a serialized set.
    """
    layout = layout_of_sets(sets.cast(pa.large_binary()), form, where)
    owners, rows = decode_sets(layout, ~layout.dense, where)
    yield KeyedRows(keys, key_digests, rows, owners)
    for number in np.flatnonzero(layout.dense).tolist():
        for part in layout.parts(number):
            if part.bitmap is not None:
                pieces = bitmap_parts(part.bitmap, _MOST, where)
            else:
                count = rows_in(part.key)
                starts = range(0, count, _TOGETHER)
                pieces = (np.arange(each, min(each + _TOGETHER, count), dtype=np.uint32) for each in starts)
            for lower in pieces:
                found = addresses_in(part.key, lower)
                yield KeyedRows(keys, key_digests, found, np.full(len(found), number))


def _read_rows(table: IndexTable) -> int:
    """Return the number of sets to read together."""
    return max(1, min(1 << 16, _READ_BYTES * table.num_rows // max(table.num_bytes, 1)))


class BitmapContent:
    """Entries of a segment of a bitmap index: the value of each row.

    Parameters
    ----------
    folder
        Folder of its file.
    rows_in
        Returns the number of rows, deleted ones included, of a fragment.

    Attributes
    ----------
    kind : DataType
        Type of the keys.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    """

    is_exact = True

    def __init__(self, folder: IndexFolder, rows_in: RowsIn) -> None:
        self._table = table = folder.open(LOOKUP)
        self._rows_in = rows_in
        self.kind = table.column_type(KEYS)
        if table.column_type(SETS) not in (pa.binary(), pa.large_binary()):
            raise table.corrupt(f"has sets of the type {table.column_type(SETS)}")

    def entries(self) -> Iterator[KeyedRows]:
        """Yield all entries. No key may occur twice."""
        self._check_keys()
        for batch in self._table.batches([KEYS, SETS], _read_rows(self._table)):
            keys, sets = batch.columns
            yield from rows_of_keys(keys, digests(keys), sets, ROW_SETS, self._rows_in, self._table.where)

    def _check_keys(self) -> None:
        keys = self._table.read(columns=[KEYS]).column(0)
        if keys.null_count > 1:
            raise self._table.corrupt("has several keys that are null")
        ordered, _ = order_of(self.kind).sort(keys.drop_null())
        differ = order_of(self.kind).changes(ordered) if len(ordered) else np.ones(0, bool)
        same = np.flatnonzero(~differ)
        if len(same):
            raise self._table.corrupt(f"has the key {shown(ordered[int(same[0])])} several times")
        text = self._table.metadata.get(STATISTICS)
        if text is None:
            return
        try:
            counted = parse_json(text)["num_bitmaps"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise self._table.corrupt(f"{STATISTICS} is {text[:40]!r}") from None
        if counted != len(keys):
            raise self._table.corrupt(f"{STATISTICS} counts {json.dumps(counted)} keys, but there are {len(keys)}")

    def expected(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield the entries that values should have."""
        yield KeyedRows(values, digests(values), np.arange(len(values), dtype=np.uint64))

    def required(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield all entries that values should have."""
        return self.expected(values)


class LabelListContent(BitmapContent):
    """Entries of a segment of a label-list index: the items of the list of each row, and which rows have a null list.

    Releases up to 1.0.0 did not store the latter.
    """

    def entries(self) -> Iterator[KeyedRows]:
        """Yield all entries. No item may occur twice."""
        yield from super().entries()
        data = self._table.global_buffer(NULL_LISTS)
        if data is not None:
            where = f"{self._table.where}, rows of null lists"
            sets, key = pa.array([data], pa.large_binary()), np.array([_NULL_LIST])
            for part in rows_of_keys(pa.nulls(1), key, sets, ROW_SETS, self._rows_in, where):
                yield KeyedRows.named(_NULL_LIST_NAME, _NULL_LIST, part.rows)

    def expected(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield the entries that lists should have, one for each different item."""
        if values.null_count and NULL_LISTS in self._table.metadata:
            nulls = np.flatnonzero(np.asarray(values.is_null(), bool)).astype(np.uint64)
            yield KeyedRows.named(_NULL_LIST_NAME, _NULL_LIST, nulls)
        items, owners = pc.list_flatten(values), np.asarray(pc.list_parent_indices(values), np.int64)
        found = digests(items)
        order = np.lexsort((found, owners))
        owners, ordered = owners[order], found[order]
        first = np.append(True, (owners[1:] != owners[:-1]) | (ordered[1:] != ordered[:-1]))[: len(order)]
        yield KeyedRows(items, found, owners[first].view(np.uint64), order[first])


class NgramContent:
    """Entries of a segment of an n-gram index: the tokens of each text.

    Parameters
    ----------
    folder, rows_in
        See `BitmapContent`.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    """

    is_exact = False

    def __init__(self, folder: IndexFolder, rows_in: RowsIn) -> None:
        self._table = ngram.open_postings(folder)
        self._rows_in = rows_in

    def entries(self) -> Iterator[KeyedRows]:
        """Yield all entries. The tokens must ascend."""
        last = -1
        for batch in self._table.batches([ngram.TOKENS, ngram.ROWS], _read_rows(self._table)):
            tokens = ngram.tokens_in(self._table, batch.column(0)).astype(np.int64)
            steps = np.flatnonzero(np.diff(tokens, prepend=last) <= 0)
            if len(steps):
                raise self._table.corrupt(f"the token {tokens[steps[0]]} is not in order, or occurs several times")
            last = int(tokens[-1])
            yield from self._rows_of(tokens, batch.column(1), self._table.where)

    def _rows_of(
        self, tokens: np.ndarray[tuple[int], np.dtype[np.int64]], sets: pa.Array, where: str
    ) -> Iterator[KeyedRows]:
        keys = pa.array([_token_text(each) for each in tokens.tolist()], pa.string())
        return rows_of_keys(keys, mixed(tokens.view(np.uint64)), sets, TREEMAPS, self._rows_in, where)

    def expected(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield the entries that texts should have."""
        for tokens, sets in sets_of_texts(values, np.arange(len(values), dtype=np.uint64)):
            yield from self._rows_of(tokens.astype(np.int64), sets, "tokens of texts")

    def required(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield the entries that all releases make of texts: old ones folded fewer characters."""
        texts = values.to_pylist()
        usual = np.array([text is None or not is_doubtful(text) for text in texts], bool)
        places = np.flatnonzero(usual)
        for part in self.expected(values.filter(pa.array(usual))):
            yield KeyedRows(part.keys, part.digests, places[part.rows.view(np.int64)].view(np.uint64), part.owners)
        for place in np.flatnonzero(~usual).tolist():
            tokens = np.array(tokens_of(texts[place]), np.int64)
            keys = pa.array([_token_text(each) for each in tokens.tolist()], pa.string())
            yield KeyedRows(keys, mixed(tokens.view(np.uint64)), np.full(len(tokens), place, np.uint64))


def _token_text(token: int) -> str | None:
    """Return the characters of a token, None for that of nulls."""
    if token == NULLS:
        return None
    high, low = divmod(token, 37 * 37)
    if high >= len(_LETTERS):
        return f"token {token}"
    return _LETTERS[high] + _LETTERS[low // 37] + _LETTERS[low % 37]
