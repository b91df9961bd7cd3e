"""Dictionaries of full-text indices, open for searching: the numbers of words, and words that are similar to one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa

from lance_dataset.index.files import IndexTable
from lance_dataset.index.text.fst_layout import EMPTY_FINAL, ONE, TAIL_BYTES
from lance_dataset.index.text.fst_reader import all_transitions, dictionary_frame, single_transition

__all__ = ["Similar", "Words", "open_words"]

_TOKEN, _TOKEN_ID, _FST_BYTES = "_token", "_token_id", "_token_fst_bytes"
_FIRST_ONE = ONE << 6
#: Steps of a search for similar words, for each byte and each word of the dictionary.
_STEPS = 64


class Similar:
    """Words within a distance of another one: so many characters are inserted, deleted or replaced.

    Parameters
    ----------
    word
        The other word.
    distance
        Largest distance.
    prefix
        Number of first characters that must be equal.
    """

    def __init__(self, word: str, distance: int, prefix: int) -> None:
        self.prefix = word[:prefix].encode()
        self._rest = word[prefix:]
        self._distance = distance
        #: Distances of the beginnings of the rest of the word from the empty text.
        self.start = tuple(range(len(self._rest) + 1))

    def step(self, distances: tuple[int, ...], character: str) -> tuple[int, ...]:
        """Return the distances from a text that has one more character."""
        found = [distances[0] + 1]
        for number, wanted in enumerate(self._rest):
            same = distances[number] + (wanted != character)
            found.append(min(same, distances[number + 1] + 1, found[-1] + 1))
        return tuple(found)

    def may_match(self, distances: tuple[int, ...]) -> bool:
        """Return True if a longer text could be near enough."""
        return min(distances) <= self._distance

    def matches(self, distances: tuple[int, ...]) -> bool:
        """Return True if the text is near enough."""
        return distances[-1] <= self._distance


class Words(Protocol):
    """Dictionary of a partition."""

    def number(self, word: bytes) -> int | None:
        """Return the number of a word, None if the dictionary does not have it."""
        ...

    def similar(self, pattern: Similar, most: int) -> list[tuple[bytes, int]]:
        """Return the first words that are similar to another one, in the order of their bytes, with their numbers."""
        ...


class _FstWords:
    def __init__(self, data: bytes, count: int) -> None:
        _, self._root = dictionary_frame(data, count)
        self._nodes = data[: len(data) - TAIL_BYTES]
        self._budget = _STEPS * (len(data) + count)

    def number(self, word: bytes) -> int | None:
        """Return the number of a word, None if the dictionary does not have it."""
        address, number = self._root, 0
        for wanted in word:
            found = self._after(address, wanted)
            if found is None:
                return None
            output, address = found
            number += output
        final, output = self._end(address)
        return number + output if final else None

    def _after(self, address: int, wanted: int) -> tuple[int, int] | None:
        """Return output and target of the transition of a byte."""
        if address != EMPTY_FINAL and self._nodes[address] >= _FIRST_ONE:
            step, output, target = single_transition(self._nodes, address)
            return (output, target) if step == wanted else None
        _, _, transitions = all_transitions(self._nodes, address)
        return next(((output, target) for step, output, target in transitions if step == wanted), None)

    def _end(self, address: int) -> tuple[bool, int]:
        if address != EMPTY_FINAL and self._nodes[address] >= _FIRST_ONE:
            return False, 0
        final, output, _ = all_transitions(self._nodes, address)
        return final, output

    def similar(self, pattern: Similar, most: int) -> list[tuple[bytes, int]]:
        """Return the first words that are similar to another one, in the order of their bytes, with their numbers."""
        found: list[tuple[bytes, int]] = []
        address, number = self._root, 0
        for wanted in pattern.prefix:
            after = self._after(address, wanted)
            if after is None:
                return found
            number, address = number + after[0], after[1]
        for word in self._walk(pattern, address, number):
            if len(found) >= most:
                break
            found.append(word)
        return found

    def _walk(self, pattern: Similar, root: int, start: int) -> Iterator[tuple[bytes, int]]:
        """Yield the similar words below a node, in the order of their bytes."""
        budget = self._budget  # paths that lead to no word could go on forever
        stack = [(root, pattern.prefix, b"", start, pattern.start)]
        while stack:
            address, word, open_bytes, number, distances = stack.pop()
            final, last, transitions = self._node(address)
            budget -= 1 + len(transitions)
            if budget < 0:
                raise ValueError("has more paths than a dictionary of words can have")
            if final and not open_bytes and pattern.matches(distances):
                yield word, number + last
            for step, output, target in reversed(transitions):
                after = _stepped(pattern, open_bytes + bytes((step,)), distances)
                if after is not None:
                    stack.append((target, word + bytes((step,)), after[0], number + output, after[1]))

    def _node(self, address: int) -> tuple[bool, int, list[tuple[int, int, int]]]:
        if address != EMPTY_FINAL and self._nodes[address] >= _FIRST_ONE:
            return False, 0, [single_transition(self._nodes, address)]
        return all_transitions(self._nodes, address)


def _stepped(pattern: Similar, open_bytes: bytes, distances: tuple[int, ...]) -> tuple[bytes, tuple[int, ...]] | None:
    """Return the bytes of an unfinished character and the distances after one more byte; None if no word is near."""
    first = open_bytes[0]
    size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if len(open_bytes) < size:
        return open_bytes, distances
    after = pattern.step(distances, open_bytes.decode("utf-8", "replace"))
    return (b"", after) if pattern.may_match(after) else None


class _ListedWords:
    """Words as a sorted list."""

    def __init__(self, words: pa.Array, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        self._words = words
        self._numbers = numbers

    def _first(self, word: bytes) -> int:
        """Return the place of the first word that is not before another one."""
        low, high = 0, len(self._words)
        while low < high:
            middle = (low + high) // 2
            if self._words[middle].as_py() < word:
                low = middle + 1
            else:
                high = middle
        return low

    def number(self, word: bytes) -> int | None:
        """Return the number of a word, None if the dictionary does not have it."""
        place = self._first(word)
        if place < len(self._words) and self._words[place].as_py() == word:
            return int(self._numbers[place])
        return None

    def similar(self, pattern: Similar, most: int) -> list[tuple[bytes, int]]:
        """Return the first words that are similar to another one, in the order of their bytes, with their numbers."""
        found: list[tuple[bytes, int]] = []
        for place in range(self._first(pattern.prefix), len(self._words)):
            word: bytes = self._words[place].as_py()
            if len(found) >= most or not word.startswith(pattern.prefix):
                break
            distances = pattern.start
            for character in word[len(pattern.prefix) :].decode("utf-8", "replace"):
                distances = pattern.step(distances, character)
                if not pattern.may_match(distances):
                    break
            else:
                if pattern.matches(distances):
                    found.append((word, int(self._numbers[place])))
        return found


def open_words(table: IndexTable, count: int, *, fst: bool) -> Words:
    """Open a dictionary.

    Parameters
    ----------
    table
        The file.
    count
        Number of posting lists, which limits the number of words.
    fst
        True if the dictionary is a finite state transducer, False if it is a table of words.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    """
    if not fst:
        return _open_list(table, count)
    if table.num_rows != 1:
        raise table.corrupt(f"has {table.num_rows} rows instead of one")
    data = table.read(columns=[_FST_BYTES]).column(0)[0].as_py()
    if not isinstance(data, bytes):
        raise table.corrupt(f"{_FST_BYTES} is not binary")
    try:
        return _FstWords(data, count)
    except ValueError as error:
        raise table.corrupt(str(error)) from error


def _open_list(table: IndexTable, count: int) -> Words:
    rows = table.read(columns=[_TOKEN, _TOKEN_ID])
    words, numbers = rows.columns
    if numbers.type != pa.uint32() or words.null_count or numbers.null_count:
        raise table.corrupt(f"{_TOKEN_ID} holds nulls or has type {numbers.type}, not uint32")
    if not (pa.types.is_string(words.type) or pa.types.is_large_string(words.type)):
        raise table.corrupt(f"{_TOKEN} has type {words.type}, not text")
    known = numbers.to_numpy().astype(np.int64)
    if len(known) > count or (len(known) and int(known.max()) >= count):
        raise table.corrupt(f"has {len(known)} words, but there are {count} posting lists")
    texts = words.cast(pa.large_binary())
    order = np.array(sorted(range(len(texts)), key=lambda place: texts[place].as_py()), np.int64)
    if (np.diff(order) != 1).any():  # early releases did not sort the words
        texts, known = texts.take(pa.array(order)), known[order]
    return _ListedWords(texts, known)
