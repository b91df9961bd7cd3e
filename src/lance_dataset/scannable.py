"""What datasets and fragments have in common: every way to run a scan, and nothing of pyarrow's own machinery.

The classes derive from pyarrow's, so that other libraries recognise them, but the C++ objects below those are never
made: a method inherited from pyarrow would crash the process. Each is overridden, here or in the class itself.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import pyarrow as pa
import pyarrow.dataset as pads

from lance_dataset.errors import UnsupportedError
from lance_dataset.scanner import LanceScanner

__all__ = ["ScannableDataset", "ScannableFragment", "scan_method"]

_Result = TypeVar("_Result")


def scan_method(
    scanner: Callable[..., LanceScanner], run: Callable[..., _Result], summary: str
) -> Callable[..., _Result]:
    """A method that makes a scanner and runs it; `run` gets its own options, and unknown ones if it takes any.

    Parameters
    ----------
    scanner
        The method that makes the scanner; the new one shows its parameters.
    run
        The method of `LanceScanner`.
    summary
        First line of the docstring.
    """
    options = inspect.signature(scanner).parameters
    extra = [item for name, item in inspect.signature(run).parameters.items() if name != "self"]
    takes_rest = any(item.kind is item.VAR_KEYWORD for item in extra)
    own = {item.name for item in extra}

    def method(self: Any, *args: Any, **given: Any) -> _Result:
        rest = {name: given.pop(name) for name in list(given) if name in own or (takes_rest and name not in options)}
        return run(self.scanner(*args, **given), **rest)

    shown = [item for item in options.values() if not (takes_rest and item.kind is item.VAR_KEYWORD)]
    named = [item for item in shown if item.kind is not item.VAR_KEYWORD]
    signature = inspect.Signature([*named, *extra, *shown[len(named) :]])
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__name__ = run.__name__
    method.__qualname__ = f"{scanner.__qualname__.rpartition('.')[0]}.{run.__name__}"
    method.__doc__ = f"{summary}; parameters as for `scanner`{', others as for pyarrow' if takes_rest else ''}."
    return method


class _Scannable:
    @abstractmethod
    def scanner(self, *args: Any, **options: Any) -> LanceScanner:
        """The scan that the other methods run."""

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first rows; options as for `scanner`."""
        return self.scanner(limit=num_rows, **options).to_table()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)


class ScannableDataset(_Scannable, pads.Dataset):
    """A `pyarrow.dataset.Dataset` whose every working method is one of this package."""

    @property
    def partition_expression(self) -> NoReturn:
        """Not supported: Lance has no partitions."""
        raise UnsupportedError("Lance datasets have no partition expression")

    def _get_fragments(self, filter: Any) -> NoReturn:
        raise UnsupportedError("use get_fragments")

    def filter(self, expression: Any) -> NoReturn:
        """Not supported; pass `filter` to `scanner`."""
        raise UnsupportedError("filter is not supported; pass filter= to scanner() or to_table()")

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Not supported."""
        raise UnsupportedError("replace_schema is not supported")

    def join(
        self,
        right_dataset: Any,
        keys: Any,
        right_keys: Any = None,
        join_type: str = "left outer",
        left_suffix: str | None = None,
        right_suffix: str | None = None,
        coalesce_keys: bool = True,
        use_threads: bool = True,
    ) -> NoReturn:
        """Not supported; join the results of `to_table`."""
        raise UnsupportedError("join is not supported; join the tables of to_table()")

    def join_asof(
        self, right_dataset: Any, on: str, by: Any, tolerance: int, right_on: Any = None, right_by: Any = None
    ) -> NoReturn:
        """Not supported; join the results of `to_table`."""
        raise UnsupportedError("join_asof is not supported; join the tables of to_table()")

    def sort_by(self, sorting: Any, **kwargs: Any) -> NoReturn:
        """Not supported; pass `order_by` to `scanner`."""
        raise UnsupportedError("sort_by is not supported; pass order_by= to scanner()")


class ScannableFragment(_Scannable, pads.Fragment):
    """A `pyarrow.dataset.Fragment` whose every working method is one of this package."""

    @property
    def partition_expression(self) -> NoReturn:
        """Not supported: Lance has no partitions."""
        raise UnsupportedError("Lance fragments have no partition expression")
