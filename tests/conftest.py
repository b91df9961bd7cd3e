"""Settings all tests share.

Hypothesis profiles: ``ci`` (the default) is quick and tries the same examples every time, ``long`` looks for new
ones; choose with ``HYPOTHESIS_PROFILE=long make test``.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from s3_server import s3_server  # noqa: F401 - a fixture

_CHECKS_OFF = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "ci", max_examples=30, derandomize=True, deadline=None, print_blob=True, suppress_health_check=_CHECKS_OFF
)
settings.register_profile("long", max_examples=1000, deadline=None, print_blob=True, suppress_health_check=_CHECKS_OFF)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
