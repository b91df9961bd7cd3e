"""Passages of English text that come with Python, and a small model that turns text into vectors."""

from __future__ import annotations

import re
import textwrap
from pydoc_data.topics import topics
from typing import Any

import pandas as pd
from pyspark.sql.functions import pandas_udf

__all__ = ["DIMENSION", "embedder", "passages"]

DIMENSION = 256
_LEAST_WORDS = 12


def passages() -> list[tuple[int, str, str]]:
    """Return number, topic and text of the paragraphs of Python's language reference, as ``help()`` shows it."""
    found = [
        (topic, " ".join(textwrap.dedent(paragraph).split()))
        for topic, text in sorted(topics.items())
        for paragraph in re.split(r"\n\s*\n", text)
    ]
    kept = [(topic, text) for topic, text in found if len(text.split()) >= _LEAST_WORDS]
    return [(number, topic, text) for number, (topic, text) in enumerate(kept)]


def embedder() -> Any:
    """Return a pandas function of Spark that makes vectors of texts.

    The model is a feature hash: each word of four letters or more adds 1 or -1 to one of the dimensions, by its
    checksum, and the sum has length 1. Texts with the same words are near each other. It needs no training and gives
    the same everywhere.
    """
    dimension = DIMENSION

    @pandas_udf("array<float>")  # type: ignore[call-overload, untyped-decorator]
    def embed(texts: pd.Series) -> pd.Series:  # sent by value: workers need not have this module
        import re
        import zlib

        import numpy as np

        def vector(text: str) -> Any:
            sums = np.zeros(dimension, np.float32)
            for word in re.findall(r"[a-z]{4,}", text.lower()):
                checksum = zlib.crc32(word.encode())
                sums[checksum % dimension] += 1.0 if checksum & 0x80000000 else -1.0
            return sums / max(float(np.linalg.norm(sums)), 1e-9)

        return texts.map(vector)

    return embed
