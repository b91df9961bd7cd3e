"""Programs that are run twice: as they were written for pylance, and with the import changed."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest


def printed(text: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a program prints that gets a folder as its argument."""
    folder.mkdir()
    monkeypatch.setattr(sys, "argv", [name, str(folder)])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, name, "exec", dont_inherit=True), {"__name__": "__main__"})
    return out.getvalue()


def compare(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a program as it is and with the import changed, and compare what both print."""
    text = path.read_text(encoding="utf-8")
    ours = re.sub(r"^import lance$", "import lance_dataset as lance", text, flags=re.MULTILINE)
    ours = re.sub(r"^from lance\b", "from lance_dataset", ours, flags=re.MULTILINE)
    assert ours != text
    expected = printed(text, path.name, folder / "reference", monkeypatch)
    assert printed(ours, path.name, folder / "ours", monkeypatch) == expected
    assert expected
