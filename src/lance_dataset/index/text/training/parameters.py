"""Parameters of full-text indices: those of the analysis, and those of the layout of the files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from google.protobuf.message import DecodeError

from lance_dataset._proto import scalar_index_pb2
from lance_dataset.errors import CorruptFileError, InvalidInputError, OutOfRangeError
from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.text.analysis.parameters import AnalysisParameters
from lance_dataset.index.text.layout import METADATA_FILE
from lance_dataset.index.text.posting_blocks import BlockFormat

__all__ = ["InvertedParameters"]

_DEFAULT_FORMAT, _LARGE_FORMAT = 2, 3
_SMALL, _LARGE = 128, 256
#: File of the parameters of indices of releases before 1.0, and their key.
_OLD_TOKENS, _OLD_PARAMETERS = "tokens.lance", "tokenizer"
#: How releases analyzed texts that did not record it.
_OLDEST_PARAMETERS: Final = {"ascii_folding": False}
_LIST_ELEMENT: Final = scalar_index_pb2.InvertedIndexDetails.LIST_ELEMENT
_BLOCK_SIZE, _POSITION, _FORMAT = "block_size", "with_position", "format_version"
#: Parameters that only say how an index is built; it is built the same whatever their value.
_IGNORED: Final = frozenset({"num_workers"})
_TEXTS: Final = frozenset({"base_tokenizer", "language"})
_FLAGS: Final = frozenset({field.name for field in fields(AnalysisParameters) if field.type == "bool"} | {_POSITION})
_NUMBERS: Final = frozenset({"max_token_length", "min_ngram_length", "max_ngram_length", _BLOCK_SIZE, *_IGNORED})
_KNOWN: Final = _TEXTS | _FLAGS | _NUMBERS | {"custom_stop_words", _FORMAT}


@dataclass(frozen=True)
class InvertedParameters:
    """Parameters of a full-text index, complete and checked.

    Attributes
    ----------
    analysis
        How texts become tokens.
    with_position
        True if the positions of tokens are kept.
    block_size
        Documents of a full block of postings, 128 or 256.
    format_version
        Version of the layout, 1 to 3.
    by_element
        True if each element of a list is a document, False if each row is one.
    """

    analysis: AnalysisParameters
    with_position: bool = False
    block_size: int = _SMALL
    format_version: int = _DEFAULT_FORMAT
    by_element: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any], *, by_element: bool = False) -> InvertedParameters:
        """Return the parameters that a user gives. Other names are ignored.

        Parameters
        ----------
        given
            Parameters by name.
        by_element
            True if each element of a list is a document.

        Raises
        ------
        InvalidInputError
            A parameter has the wrong type or value, or two contradict each other.
        """
        given = {name: value for name, value in given.items() if value is not None or name == "max_token_length"}
        analysis = AnalysisParameters.of(given)
        position = given.get(_POSITION, False)
        if not isinstance(position, bool):
            raise InvalidInputError(f"{_POSITION} must be True or False, not {position!r}")
        block_size = given.get(_BLOCK_SIZE, _SMALL)
        if isinstance(block_size, bool) or block_size not in (_SMALL, _LARGE):
            raise InvalidInputError(f"FTS inverted index block_size must be one of 128 or 256, got {block_size!r}")
        version = _version(given.get(_FORMAT), analysis, block_size)
        return cls(analysis, position, block_size, version, by_element)

    @classmethod
    def of_keywords(cls, given: Mapping[str, Any], *, by_element: bool = False) -> InvertedParameters:
        """Return the parameters that a user gives as keywords; see `of`.

        Raises
        ------
        TypeError
            A parameter has the wrong type.
        InvalidInputError, OutOfRangeError
            A parameter is unknown or has the wrong value, or two contradict each other.
        """
        named = dict(given)
        if "analyzer" in named:
            named.setdefault("base_tokenizer", named.pop("analyzer"))
        for name, value in named.items():
            _check_keyword(name, value)
        return cls.of(named, by_element=by_element)

    @classmethod
    def of_index(cls, details: bytes, folder: IndexFolder) -> InvertedParameters:
        """Return the parameters of an existing index.

        Raises
        ------
        CorruptFileError
            The files or the details are malformed.
        """
        where = folder.uri(METADATA_FILE)
        try:
            found = scalar_index_pb2.InvertedIndexDetails.FromString(details)
        except DecodeError as error:
            raise CorruptFileError(f"{where}: the details of the full-text index are malformed: {error}") from None
        old = METADATA_FILE not in folder.names()
        table = folder.open(_OLD_TOKENS if old else METADATA_FILE)
        stored = _stored(table, _OLD_PARAMETERS if old else "params")
        if old and _OLD_PARAMETERS not in table.metadata:
            stored = _OLDEST_PARAMETERS
        metadata = table.metadata
        positions = metadata.get("positions_layout") or metadata.get("posting_tail_codec") == "varint_delta_v1"
        block_size = stored.get(_BLOCK_SIZE) or _SMALL
        version = metadata.get("format_version") or str(_DEFAULT_FORMAT if positions or old else 1)
        try:
            if block_size not in (_SMALL, _LARGE) or version not in ("1", "2", "3"):
                raise InvalidInputError(f"blocks of {block_size} documents in the format version {version}")
            known = {name: value for name, value in stored.items() if value is not None or name == "max_token_length"}
            analysis = AnalysisParameters.of_json(known)
        except InvalidInputError as error:
            raise table.corrupt(f"its parameters are malformed: {error}") from None
        by_element = found.document_granularity == _LIST_ELEMENT
        number = max(int(version), _LARGE_FORMAT if block_size == _LARGE else 1)
        return cls(analysis, bool(stored.get(_POSITION)), block_size, number, by_element)

    @property
    def blocks(self) -> BlockFormat:
        """Layout of blocks of postings."""
        return BlockFormat(self.block_size, self.format_version == 1)

    @property
    def index_version(self) -> int:
        """Version of the index in the manifest."""
        return _LARGE_FORMAT if self.by_element else self.format_version

    @property
    def details(self) -> bytes:
        """Value of the details in the manifest."""
        found = self.analysis.details(
            with_position=self.with_position, block_size=self.block_size, format_version=self.format_version
        )
        if self.by_element:
            found.document_granularity = _LIST_ELEMENT
        return found.SerializeToString()

    def json(self, *, is_json: bool) -> str:
        """Return the parameters as index files have them; `is_json` for columns of JSON documents."""
        found: dict[str, Any] = {"lance_tokenizer": "json" if is_json else "text"}
        for name in _ORDER:
            own = getattr(self, name) if name in (_POSITION, _BLOCK_SIZE) else getattr(self.analysis, name)
            found[name] = list(own) if isinstance(own, tuple) else own
        return json.dumps(found, separators=(",", ":"), ensure_ascii=False)

    def posting_metadata(self) -> dict[str, str]:
        """Return the metadata of files of posting lists."""
        found = {"posting_block_size": str(self.block_size), "format_version": str(self.format_version)}
        if self.format_version > 1:
            found["posting_tail_codec"] = "varint_delta_v1"
            if self.with_position:
                found |= {"positions_layout": "shared_stream_v2", "positions_codec": "packed_delta_v1"}
        return found

    def index_metadata(self, partitions: list[int], *, is_json: bool) -> dict[str, str]:
        """Return the metadata of the file that describes the index."""
        return {
            "posting_tail_codec": "fixed32_v1",
            **self.posting_metadata(),
            "partitions": json.dumps(partitions, separators=(",", ":")),
            "params": self.json(is_json=is_json),
            "token_set_format": "fst",
        }


#: Order of the parameters in index files.
_ORDER: Final = (
    "base_tokenizer",
    "language",
    _POSITION,
    "max_token_length",
    "lower_case",
    "stem",
    "remove_stop_words",
    "custom_stop_words",
    "ascii_folding",
    "min_ngram_length",
    "max_ngram_length",
    "prefix_only",
    _BLOCK_SIZE,
    "split_identifiers",
    "split_on_numerics",
    "preserve_original",
    "index_operators",
)


def _version(given: Any, analysis: AnalysisParameters, block_size: int) -> int:
    """Return the version of the layout: the given one, or the lowest that fits."""
    is_code = analysis.base_tokenizer == "code"
    if given is None:
        return _LARGE_FORMAT if is_code or block_size == _LARGE else _DEFAULT_FORMAT
    version = str(int(given) if isinstance(given, bool) else given).lower().removeprefix("v")
    if isinstance(given, float) or version not in ("1", "2", "3"):
        raise InvalidInputError(f"unsupported FTS format version {given}, expected 1, 2, or 3")
    if block_size == _LARGE and version != "3":
        raise InvalidInputError(f"FTS format_version={version} is incompatible with block_size=256; use 3")
    if is_code and version != "3":
        raise InvalidInputError(f"base_tokenizer='code' requires FTS format_version=3, got {version}")
    return int(version)


def _check_keyword(name: str, value: Any) -> None:
    """Check the type of a keyword."""
    if name not in _KNOWN:
        raise InvalidInputError(f"unknown FTS index parameter {name!r}; known are {', '.join(sorted(_KNOWN))}")
    if name in _FLAGS and not isinstance(value, bool):
        raise TypeError(f"{name} of a full-text index must be True or False, not {value!r}")
    if name in _TEXTS and not isinstance(value, str):
        raise TypeError(f"{name} of a full-text index must be text, not {value!r}")
    if (
        name in _NUMBERS
        and not isinstance(value, int)
        and not (value is None and name in ("max_token_length", "num_workers"))
    ):
        raise TypeError(f"{name} of a full-text index must be an integer, not {value!r}")
    if name in _NUMBERS and isinstance(value, int) and not 0 <= value < 1 << 63:
        raise OutOfRangeError(f"{name} of a full-text index must not be negative or above 2**63, but is {value}")
    if name == "custom_stop_words" and isinstance(value, str):
        raise TypeError(f"{name} of a full-text index must be a list of texts, not {value!r}")


def _stored(table: IndexTable, key: str) -> dict[str, Any]:
    """Return the parameters that an index file has."""
    try:
        found = parse_json(table.metadata.get(key, "{}"))
    except (ValueError, RecursionError) as error:
        raise table.corrupt(f"{key} in its metadata is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise table.corrupt(f"{key} in its metadata is not a JSON object")
    return found
