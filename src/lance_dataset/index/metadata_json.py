"""JSON in the metadata of index files."""

from __future__ import annotations

import json
from typing import Any

from lance_dataset.limits import check_memory

__all__ = ["parse_json"]

#: Bytes of memory for each character: a list in a list takes two characters and a place.
_CHARACTER = 32


def parse_json(text: str) -> Any:
    """Parse JSON.

    Raises
    ------
    ValueError
        The text is not JSON, or needs too much memory.
    RecursionError
        It is nested too deeply.
    """
    check_memory(_CHARACTER * len(text), len(text), f"JSON of {len(text):,} characters")
    return json.loads(text)
