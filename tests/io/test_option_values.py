"""Tests of truth values in options and environment variables."""

from __future__ import annotations

import pytest

from lance_dataset.io.option_values import lenient_bool, strict_bool


@pytest.mark.parametrize(("text", "truth"), [("true", True), ("false", False), ("True", None), ("1", None), ("", None)])
def test_strict(text: str, truth: bool | None) -> None:
    assert strict_bool(text) is truth


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        *(("true", True), (" YES ", True), ("1", True), ("on", True), ("Off", False), ("0", False), ("n", False)),
        *(("", None), ("maybe", None), ("2", None)),
    ],
)
def test_lenient(text: str, truth: bool | None) -> None:
    assert lenient_bool(text) is truth
