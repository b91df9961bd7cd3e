"""Runs of old releases against this package, and the page of the results; see ../compatibility.py."""

import sys
from pathlib import Path

# The types and the rows of them are those of the tests.
sys.path.append(str(Path(__file__).parents[2] / "tests"))
