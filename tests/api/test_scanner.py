"""Every way to read rows, run on the same dataset by both implementations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import Call, Outcome, assert_same_outcome
