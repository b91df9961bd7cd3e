"""Queries of searches, under the names that the reference uses, and `Highlight`."""

from lance_dataset.records.index_config import DocumentGranularity
from lance_dataset.scan.full_text.highlight import Highlight
from lance_dataset.scan.queries import MinHashQuery
from lance_dataset.scan.text_queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextOperator,
    FullTextQuery,
    FullTextQueryType,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)

__all__ = [
    "BooleanQuery",
    "BoostQuery",
    "CombinedFieldsQuery",
    "DocumentGranularity",
    "FullTextOperator",
    "FullTextQuery",
    "FullTextQueryType",
    "Highlight",
    "MatchQuery",
    "MinHashQuery",
    "MultiMatchQuery",
    "Occur",
    "PhraseQuery",
]
