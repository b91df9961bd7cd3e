"""Analysis of JSON documents: tokens of the form ``path,type,value`` for every scalar in a document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.file.json_columns import decode_array
from lance_dataset.index.text.analysis.analyzer import Analyzer
from lance_dataset.index.text.analysis.batches import Rules, TokenBatch, intern, token_list
from lance_dataset.index.text.analysis.parameters import AnalysisParameters
from lancecodec.search.tokens import TokenTable

__all__ = ["JsonAnalyzer", "json_scalars", "parse_triplets"]

_ALL: Final = Rules((1 << 63) - 1, lower_case=False)
_TYPES: Final = ("str", "number", "bool", "null")
#: Documents that are analyzed together.
_DOCUMENTS: Final = 1 << 12
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Number(str):
    """Number as its text."""

    __slots__ = ()


class JsonAnalyzer:
    """Analysis of JSON documents. An object is used by one thread at a time.

    A document is read depth first, and the keys of an object in ascending order. The path of a scalar has the keys on
    the way to it, with dots between; elements of arrays have the path of the array. Each word of a text is a token, and
    so is a number, a boolean or a null. Positions are numbers of tokens, without gaps.

    Parameters
    ----------
    parameters
        Parameters of the analysis of texts.

    Raises
    ------
    UnsupportedError, InvalidInputError
        See `Analyzer`.
    """

    def __init__(self, parameters: AnalysisParameters) -> None:
        self._words = Analyzer(parameters)
        self._forget()

    def _forget(self) -> None:
        #: Distinct tokens of all documents so far.
        self.table = TokenTable()

    def forget(self) -> None:
        """Forget all tokens, to free their memory; codes begin at 0 again."""
        self._words.forget()
        self._forget()

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the distinct tokens."""
        return self._words.nbytes + self.table.nbytes

    def analyze(self, documents: pa.Array, where: str) -> TokenBatch:
        """Return the tokens of documents in binary form, with codes of `table`. Nulls have none.

        Parameters
        ----------
        documents
            The documents.
        where
            Name of the column, for error messages.

        Raises
        ------
        CorruptFileError
            A document is malformed.
        """
        parts = []
        for start in range(0, len(documents), _DOCUMENTS):
            texts = decode_array(documents.slice(start, _DOCUMENTS), where)
            parts.append(self._analyzed(texts.to_pylist()))
        return TokenBatch.concat(parts)

    def _analyzed(self, texts: list[str | None]) -> TokenBatch:
        """Return the tokens of documents that are given as text."""
        prefixes: list[str] = []
        values: list[str] = []
        is_word: list[bool] = []
        counts: list[int] = []
        for text in texts:
            before = len(prefixes)
            for path, kind, value in () if text is None else _scalars(_parsed(text), ""):
                prefixes.append(f"{path},{kind},")
                values.append(value)
                is_word.append(kind == "str")
            counts.append(len(prefixes) - before)
        codes, leaves = self._tokens(prefixes, values, np.array(is_word, bool))
        owners = np.repeat(np.arange(len(texts)), counts)[leaves]
        ends = np.searchsorted(owners, np.arange(len(texts)), side="right")
        firsts = np.append(0, ends[:-1])
        positions = np.arange(len(codes)) - firsts[owners]
        return TokenBatch(codes, positions.astype(np.int32), ends.astype(np.int64))

    def _tokens(self, prefixes: list[str], values: list[str], is_word: Any) -> tuple[Any, Any]:
        """Return the codes of the tokens of scalars, and for each the number of its scalar."""
        words = np.flatnonzero(is_word)
        others = np.flatnonzero(~is_word)
        found = self._words.analyze(pa.array([values[place] for place in words.tolist()], pa.large_string()))
        known = token_list(self._words.table)
        leaves = np.concatenate([words[found.texts()], others])
        tokens = [
            *(
                prefixes[leaf] + known[code]
                for leaf, code in zip(leaves[: len(found.codes)].tolist(), found.codes.tolist(), strict=True)
            ),
            *(prefixes[leaf] + values[leaf] for leaf in others.tolist()),
        ]
        order = np.argsort(leaves, kind="stable")
        codes = intern(self.table, pa.array(tokens, pa.large_string()), _ALL)
        return codes[order], leaves[order]


def _parsed(text: str) -> Any:
    return json.loads(text, parse_int=_Number, parse_float=_Number)


def _scalars(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, type and text of the scalars in a value, depth first."""
    if isinstance(value, dict):
        for key in sorted(value, key=lambda name: name.encode("utf-8", "surrogatepass")):
            yield from _scalars(value[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            yield from _scalars(item, path)
    elif isinstance(value, _Number):
        yield path, "number", str(value)
    elif isinstance(value, bool):
        yield path, "bool", "true" if value else "false"
    elif value is None:
        yield path, "null", "null"
    else:
        yield path, "str", value


def json_scalars(document: str) -> list[tuple[str, str, str, str]]:
    """Return for each scalar its path in tokens, its type, its text, and its own path, such as ``$.a[0]``.

    Raises
    ------
    ValueError
        The document is not JSON.
    """
    value = _parsed(document)
    return [(*scalar, place) for scalar, place in zip(_scalars(value, ""), _places(value, "$"), strict=True)]


def _places(value: Any, place: str) -> Iterator[str]:
    """Yield the own paths of the scalars in a value, in the order of `_scalars`."""
    if isinstance(value, dict):
        for key in sorted(value, key=lambda name: name.encode("utf-8", "surrogatepass")):
            step = f".{key}" if _NAME.fullmatch(key) else f"[{json.dumps(key, ensure_ascii=False)}]"
            yield from _places(value[key], place + step)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _places(item, f"{place}[{number}]")
    else:
        yield place


def parse_triplets(query: str) -> list[tuple[str, str, str]]:
    """Return the path, the type and the value of each triplet of a query of JSON documents.

    Raises
    ------
    InvalidInputError
        The query does not consist of ``path,type,value`` with semicolons between, or a type is unknown.
    """
    found: list[tuple[str, str, str]] = []
    for part in query.split(";"):
        path, _, rest = part.partition(",")
        kind, separator, value = rest.partition(",")
        if not separator or kind not in _TYPES:
            raise InvalidInputError(
                f"a query of JSON documents has the form path,type,value;... with a type of {', '.join(_TYPES)}, "
                f"not {part!r}"
            )
        found.append((path, kind, value))
    return found
