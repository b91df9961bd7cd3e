from __future__ import annotations

import pytest

from lance_dataset.io.truth import lenient_truth, strict_truth


@pytest.mark.parametrize(("text", "truth"), [("true", True), ("false", False), ("True", None), ("1", None), ("", None)])
def test_strict(text: str, truth: bool | None) -> None:
    assert strict_truth(text) is truth


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        *(("true", True), (" YES ", True), ("1", True), ("on", True), ("Off", False), ("0", False), ("n", False)),
        *(("", None), ("maybe", None), ("2", None)),
    ],
)
def test_lenient(text: str, truth: bool | None) -> None:
    assert lenient_truth(text) is truth
