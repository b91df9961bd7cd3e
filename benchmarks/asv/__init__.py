"""The asv suite. It uses the data and kernel cases of the other benchmarks, one directory up."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
