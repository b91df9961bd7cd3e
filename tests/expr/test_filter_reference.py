"""Tests that filters keep the rows that the reference keeps."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from support.grammar.filters import Grammar

from lance_dataset.expr.compiled import compile_filter

HAND_PICKED = Path(__file__).with_name("filters.txt")


def _hand_picked() -> list[str]:
    return HAND_PICKED.read_text(encoding="utf-8").splitlines()


def _kept(text, schema, data) -> list[int]:
    mask = compile_filter(text, schema).mask(data)
    assert mask.null_count == 0
    return [row for row, keep in enumerate(mask.to_pylist()) if keep]


def test_hand_picked_filters(batch, reference_rows):
    different = []
    for text in _hand_picked():
        expected, found = reference_rows(text), _kept(text, batch.schema, batch)
        if expected != found:
            different.append((text, expected, found))
    assert different == []


@pytest.mark.parametrize("seed", range(10))
def test_generated_filters(seed, batch, reference_rows):
    grammar = Grammar(seed)
    different = []
    for number in range(60):
        text = grammar.filter(number % 4)
        expected, found = reference_rows(text), _kept(text, batch.schema, batch)
        if expected != found:
            different.append((text, expected, found))
    assert different == []


def test_table_and_batches_agree(table, batch):
    text = "i > 1 AND (s LIKE '%a%' OR f > 0)"
    compiled = compile_filter(text, table.schema)
    halves = [batch.slice(0, 20), batch.slice(20, 0), batch.slice(20)]
    whole = compiled.mask(batch).to_pylist()
    assert compiled.mask(table).to_pylist() == whole
    assert list(chain.from_iterable(compiled.mask(half).to_pylist() for half in halves)) == whole
    assert compiled.mask(table.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize("start", [1, 5, 17])
def test_sliced_batches_of_nested_columns(start, batch):
    for text in [
        "array_has(li, 1)",
        "li[1] = 1",
        "array_has_any(words, ['a'])",
        "vec[1] = 3",
        "st.x = 1",
        "array_has(vec, 3.0)",
    ]:
        compiled = compile_filter(text, batch.schema)
        assert compiled.mask(batch.slice(start, 9)).to_pylist() == compiled.mask(batch).to_pylist()[start : start + 9]
