"""Passages: the tokens of documents with their places, for showing where words were found."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa

from lance_dataset.file.json_columns import decode_array
from lance_dataset.index.text.analysis.analyzer import Analyzer
from lance_dataset.index.text.analysis.batches import TokenSpan
from lance_dataset.index.text.analysis.json_documents import json_scalars
from lance_dataset.index.text.training.documents import is_json, is_list
from lance_dataset.index.text.training.parameters import InvertedParameters

__all__ = ["Passage", "PassageReader"]

#: Positions between the elements of a list that are documents of their own, so that no phrase has words of two.
_APART = 1 << 40


@dataclass(frozen=True)
class Passage:
    """Text with the tokens that an index makes of it.

    Attributes
    ----------
    path
        Its place: ``[2]`` for an element of a list, ``$.a[0]`` for a scalar of a JSON document; None for a whole text.
    text
        The text.
    tokens
        Those of its tokens that are wanted, with positions in the document.
    """

    path: str | None
    text: str
    tokens: list[TokenSpan]


class PassageReader:
    """Reader of the passages of values. An object is used by one thread at a time.

    Parameters
    ----------
    parameters
        Parameters of the index.
    kind
        Type of the values.
    words
        Tokens that are wanted; others only count.
    where
        Name of the column, for error messages.
    """

    def __init__(self, parameters: InvertedParameters, kind: pa.DataType, words: Collection[str], where: str) -> None:
        self._analyzer = Analyzer(parameters.analysis)
        self._by_element = parameters.by_element
        self._kind = kind
        self._words = frozenset(words)
        self._where = where

    def read(self, values: pa.Array) -> list[list[Passage]]:
        """Return the passages of each value; nulls have none.

        Raises
        ------
        CorruptFileError
            A JSON document is malformed.
        """
        if is_json(self._kind):
            documents: list[str | None] = decode_array(values, self._where).to_pylist()
            return [[] if text is None else self._of_json(text) for text in documents]
        found = values.to_pylist()
        if not is_list(self._kind):
            return [[] if text is None else [Passage(None, text, self._wanted(text))] for text in found]
        read = self._of_elements if self._by_element else self._of_list
        return [[] if texts is None else list(read(texts)) for texts in found]

    def _wanted(self, text: str) -> list[TokenSpan]:
        return [each for each in self._analyzer.spans(text) if each.token in self._words]

    def _of_json(self, document: str) -> list[Passage]:
        found: list[Passage] = []
        position = 0
        for path, kind, text, place in json_scalars(document):
            spans = self._analyzer.spans(text) if kind == "str" else iter([TokenSpan(text, 0, 0, len(text))])
            tokens = []
            for each in spans:
                token = f"{path},{kind},{each.token}"
                if token in self._words:
                    tokens.append(TokenSpan(token, position, each.start, each.end))
                position += 1
            found.append(Passage(place, text, tokens))
        return found

    def _of_elements(self, texts: Sequence[str | None]) -> Iterator[Passage]:
        for number, text in enumerate(texts):
            if text is not None:
                tokens = [each._replace(position=each.position + number * _APART) for each in self._wanted(text)]
                yield Passage(f"[{number}]", text, tokens)

    def _of_list(self, texts: Sequence[str | None]) -> Iterator[Passage]:
        """Yield the elements of a list that is one document: its texts with blanks between."""
        kept: list[tuple[int, str]] = []
        for number, text in enumerate(texts):
            if text or (text is not None and kept):
                kept.append((number, text))
        tokens = self._wanted(" ".join(text for _, text in kept)) if kept else []
        ends = list(accumulate(len(text) + 1 for _, text in kept))
        found: list[list[TokenSpan]] = [[] for _ in kept]
        for each in tokens:
            # Some tokenizers make tokens of several elements; each element has its part.
            place = bisect_right(ends, each.start)
            while place < len(kept) and (place == 0 or ends[place - 1] < each.end):
                start = ends[place] - len(kept[place][1]) - 1
                part = max(each.start - start, 0), min(each.end - start, len(kept[place][1]))
                if part[0] < part[1]:
                    found[place].append(each._replace(start=part[0], end=part[1]))
                place += 1
        for (number, text), mine in zip(kept, found, strict=True):
            yield Passage(f"[{number}]", text, mine)
