"""Package of the interface of catalogs, which is optional."""

from __future__ import annotations

from typing import Any

from lance_dataset.io.external.base import required_package

__all__ = ["errors", "models", "package"]

_EXTRA, _WHAT = "namespace", "a catalog"

package: Any = required_package("lance_namespace", _EXTRA, _WHAT)
#: Classes of requests and answers.
models: Any = required_package("lance_namespace_urllib3_client.models", _EXTRA, _WHAT)
#: Classes of errors.
errors: Any = required_package("lance_namespace.errors", _EXTRA, _WHAT)
