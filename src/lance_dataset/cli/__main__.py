"""``python -m lance_dataset.cli`` is the `lance-dataset` command."""

from __future__ import annotations

from lance_dataset.cli import main

main()
