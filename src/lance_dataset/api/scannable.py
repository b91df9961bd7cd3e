"""Base classes of datasets and fragments, with the methods that run scans.

The classes derive from pyarrow's, so that other libraries recognise them. The C++ objects of the pyarrow classes are
never created, so a method inherited from pyarrow would crash the process. Every such method is overridden, here or in
the derived class.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as pads

from lance_dataset.api.scanner.scanner import LanceScanner
from lance_dataset.errors import UnsupportedError

__all__ = ["ScannableDataset", "ScannableFragment"]


class _Scannable:
    @abstractmethod
    def scanner(self, *args: Any, **options: Any) -> LanceScanner:
        """Make the scanner that the other methods run."""

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """Read the first rows. Options are those of `scanner`."""
        return self.scanner(limit=num_rows, **options).to_table()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)


class ScannableDataset(_Scannable, pads.Dataset):
    """A `pyarrow.dataset.Dataset` with all methods overridden by this package."""

    @property
    def partition_expression(self) -> NoReturn:
        """Not supported: Lance has no partitions."""
        raise UnsupportedError("Lance datasets have no partition expression")

    def _get_fragments(self, filter: object) -> NoReturn:
        raise UnsupportedError("use get_fragments")

    def filter(self, expression: object) -> NoReturn:
        """Not supported; pass `filter` to `scanner`."""
        raise UnsupportedError("filter is not supported; pass filter= to scanner() or to_table()")

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Not supported."""
        raise UnsupportedError("replace_schema is not supported")

    def join(
        self,
        right_dataset: object,
        keys: str | Sequence[str],
        right_keys: str | Sequence[str] | None = None,
        join_type: str = "left outer",
        left_suffix: str | None = None,
        right_suffix: str | None = None,
        coalesce_keys: bool = True,
        use_threads: bool = True,
    ) -> NoReturn:
        """Not supported; join the results of `to_table`."""
        raise UnsupportedError("join is not supported; join the tables of to_table()")

    def join_asof(
        self,
        right_dataset: object,
        on: str,
        by: str | Sequence[str],
        tolerance: int,
        right_on: str | None = None,
        right_by: str | Sequence[str] | None = None,
    ) -> NoReturn:
        """Not supported; join the results of `to_table`."""
        raise UnsupportedError("join_asof is not supported; join the tables of to_table()")

    def sort_by(self, sorting: str | Sequence[tuple[str, str]], **kwargs: Any) -> NoReturn:
        """Not supported; pass `order_by` to `scanner`."""
        raise UnsupportedError("sort_by is not supported; pass order_by= to scanner()")


class ScannableFragment(_Scannable, pads.Fragment):
    """A `pyarrow.dataset.Fragment` with all methods overridden by this package."""

    @property
    def partition_expression(self) -> NoReturn:
        """Not supported: Lance has no partitions."""
        raise UnsupportedError("Lance fragments have no partition expression")
