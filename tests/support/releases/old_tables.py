"""Datasets written by old releases of the reference, as writable copies."""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["DATASETS", "STABLE_RELEASES", "copied"]

DATASETS = Path(__file__).parents[2] / "fixtures" / "datasets"


def _is_stable(name: str) -> bool:
    """Return True if the file version was stable in the writing release; the reference still reads such files."""
    _, release, version, *_ = name.split("-")
    early = {"2.1": release.startswith("0."), "2.2": release == "1.0.0", "2.3": release != "14.0.2"}
    return not early.get(version, False)


STABLE_RELEASES = sorted(path.name for path in DATASETS.iterdir() if _is_stable(path.name))


def copied(source: Path, target: Path) -> str:
    """Make a copy that can be written to."""
    shutil.copytree(source, target)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return str(target)
