"""Parameters of MinHash indices, and the details that manifests and files hold of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import DecodeError

from lance_dataset._proto import scalar_index_pb2
from lance_dataset.errors import CorruptFileError, InvalidInputError
from lance_dataset.index.text.analysis.parameters import AnalysisParameters
from lance_dataset.properties import cached_property
from lancecodec.search.minhash import MAX_BANDS

__all__ = ["MinHashParameters"]

Tokenizer = scalar_index_pb2.InvertedIndexDetails

_NUMBERS: Final[Mapping[str, int]] = {"num_hashes": 128, "num_bands": 16, "shingle_size": 3}
_MAX_HASHES: Final = 4096
_MAX_NUMBER: Final = (1 << 32) - 1
_TOKENIZER: Final = "tokenizer"
#: Base tokenizers whose words depend on files outside of the table.
_DICTIONARIES: Final = ("jieba", "lindera")


@dataclass(frozen=True)
class MinHashParameters:
    """Parameters of an index, checked.

    Attributes
    ----------
    num_hashes
        Number of values of a signature.
    num_bands
        Number of bands of a signature.
    shingle_size
        Number of tokens of a shingle.
    tokenizer
        Analysis of the texts, with parameters of full-text indices that have no meaning here.
    """

    num_hashes: int
    num_bands: int
    shingle_size: int
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        hashes, bands = self.num_hashes, self.num_bands
        if not 1 <= hashes <= _MAX_HASHES:
            raise InvalidInputError(f"a MinHash index needs 1 <= num_hashes <= {_MAX_HASHES}, not {hashes}")
        if not 1 <= bands <= MAX_BANDS:
            raise InvalidInputError(f"a MinHash index needs 1 <= num_bands <= {MAX_BANDS}, not {bands}")
        if hashes % bands:
            raise InvalidInputError(
                f"a MinHash index needs num_hashes to be a multiple of num_bands, not num_hashes={hashes} "
                f"num_bands={bands}"
            )
        if self.shingle_size < 1:
            raise InvalidInputError("a MinHash index needs shingle_size > 0")

    @cached_property
    def analysis(self) -> AnalysisParameters:
        """Analysis of the texts."""
        return AnalysisParameters.of_details(self.tokenizer)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> MinHashParameters:
        """Return the parameters that a user gives; missing ones have their default.

        Raises
        ------
        InvalidInputError
            A parameter is unknown, or has the wrong type or value.
        """
        unknown = sorted(set(given) - {*_NUMBERS, _TOKENIZER})
        if unknown:
            known = ", ".join(f"`{name}`" for name in (*_NUMBERS, _TOKENIZER))
            raise InvalidInputError(f"a MinHash index has no parameter `{unknown[0]}`, only {known}")
        numbers = {name: _number(name, given.get(name), default) for name, default in _NUMBERS.items()}
        return cls(**numbers, tokenizer=_tokenizer(given.get(_TOKENIZER)))

    @classmethod
    def of_details(cls, details: bytes, where: str) -> MinHashParameters:
        """Return the parameters of an existing index.

        Parameters
        ----------
        details
            Value of the details in the manifest; empty for an index of the reference that was not trained, which has
            the default parameters.
        where
            Name of the file, for error messages.

        Raises
        ------
        CorruptFileError
            They are malformed, or out of range.
        """
        if not details:
            return cls.of({})
        try:
            found = scalar_index_pb2.MinHashLshIndexDetails.FromString(details)
            made = cls(found.num_hashes, found.num_bands, found.shingle_size, found.tokenizer)
            _ = made.analysis
        except (DecodeError, InvalidInputError) as error:
            raise CorruptFileError(f"{where}: the details of the MinHash index are malformed: {error}") from None
        if found.signature_version:
            raise CorruptFileError(f"{where}: MinHash signatures of version {found.signature_version} are not known")
        return made

    @property
    def details(self) -> bytes:
        """Value of the details in the manifest."""
        return scalar_index_pb2.MinHashLshIndexDetails(
            num_hashes=self.num_hashes,
            num_bands=self.num_bands,
            shingle_size=self.shingle_size,
            tokenizer=self.tokenizer,
        ).SerializeToString()


def _number(name: str, value: Any, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_NUMBER:
        raise InvalidInputError(f"{name} of a MinHash index must be a number of 32 bits, not {value!r}")
    return value


def _tokenizer(given: Any) -> Tokenizer:
    """Return the details of an analysis that a user gives by its parameters."""
    if isinstance(given, Tokenizer):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInputError(f"{_TOKENIZER} of a MinHash index must be a dict, not {given!r}")
    given = {**(given or {})}
    for name in ("custom_stop_words", "lance_tokenizer"):
        if given.get(name) is not None:
            raise InvalidInputError(f"{name} of a MinHash index cannot be kept, because its details do not record it")
    if str(given.get("base_tokenizer") or "").startswith(_DICTIONARIES):
        raise InvalidInputError(
            f"a MinHash index cannot use a dictionary, as {given['base_tokenizer']} does: it may change"
        )
    unset = [name for name, value in given.items() if value is None and name != "max_token_length"]
    for name in unset:
        del given[name]
        if name in ("stem", "remove_stop_words"):
            given[name] = True
    block_size = given.get("block_size", 128)
    if block_size not in (128, 256) or isinstance(block_size, bool):
        raise InvalidInputError(f"block_size of a full-text index must be 128 or 256, not {block_size!r}")
    version = given.get("format_version")
    if version is not None and version not in (1, 2, 3):
        raise InvalidInputError(f"format_version of a full-text index must be 1, 2 or 3, not {version!r}")
    position = given.get("with_position", False)
    if not isinstance(position, bool):
        raise InvalidInputError(f"with_position must be True or False, not {position!r}")
    analysis = AnalysisParameters.of(given, filters=False)
    return analysis.details(with_position=position, block_size=block_size, format_version=version)
