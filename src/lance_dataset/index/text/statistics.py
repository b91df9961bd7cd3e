"""Statistics of the files of full-text indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.text.layout import METADATA_FILE, InvertedLayout

__all__ = ["DEFAULT_ANALYSIS", "inverted_statistics"]

#: Parameters of the analysis that a file does not name.
DEFAULT_ANALYSIS: Mapping[str, Any] = {
    "base_tokenizer": "simple",
    "language": "English",
    "with_position": False,
    "max_token_length": 40,
    "lower_case": True,
    "stem": True,
    "remove_stop_words": True,
    "custom_stop_words": None,
    "ascii_folding": True,
    "min_ngram_length": 3,
    "max_ngram_length": 3,
    "prefix_only": False,
    "block_size": 128,
    "split_identifiers": False,
    "split_on_numerics": False,
    "preserve_original": False,
    "index_operators": False,
}

#: Files of releases before 1.0, which had no partitions.
_OLD_TOKENS, _OLD_DOCUMENTS, _OLD_PARAMETERS = "tokens.lance", "docs.lance", "tokenizer"


def inverted_statistics(folder: IndexFolder) -> dict[str, Any]:
    """Return the parameters of the analysis, and the numbers of tokens and documents of all partitions."""
    if METADATA_FILE not in folder.names():
        tokens, documents = folder.open(_OLD_TOKENS), folder.open(_OLD_DOCUMENTS)
        parameters = _parameters(tokens, _OLD_PARAMETERS)
        return {"params": parameters, "num_tokens": tokens.num_rows, "num_docs": documents.num_rows}
    partitions = InvertedLayout.read(folder).partitions
    return {
        "params": _parameters(folder.open(METADATA_FILE), "params"),
        "num_tokens": sum(folder.open(each.postings).num_rows for each in partitions),
        "num_docs": sum(folder.open(each.documents).num_rows for each in partitions),
    }


def _parameters(table: IndexTable, key: str) -> dict[str, Any]:
    try:
        found = parse_json(table.metadata.get(key, "{}"))
    except (ValueError, RecursionError) as error:
        raise table.corrupt(f"{key} in its metadata is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise table.corrupt(f"{key} in its metadata is not a JSON object")
    known = {"lance_tokenizer": None, **DEFAULT_ANALYSIS}
    return {name: found.get(name, default) for name, default in known.items()}
