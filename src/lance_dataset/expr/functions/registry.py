"""Registry of all functions.

The binder converts the arguments as the kinds of the parameters demand, and learns the result type by running the
kernel on empty arrays. To add a function, add one line to a table in one of the sibling modules.
"""

from __future__ import annotations

from importlib import import_module

from lance_dataset.expr.function import Function

__all__ = ["find_function", "function_names"]

#: Modules with `FUNCTIONS` and `ALIASES`; a later one may replace functions of an earlier one.
_MODULES = (
    "math",
    "conditional",
    "text",
    "regex",
    "encodings",
    "temporal",
    "moments",
    "statement",
    "lists",
    "list_edits",
    "list_sets",
    "list_text",
    "series",
    "maps",
    "structs",
    "vectors",
    "hashes",
    "engine",
    "geometry",
    "json",
)


def _table() -> dict[str, Function]:
    global _FUNCTIONS
    if _FUNCTIONS is None:
        found: dict[str, Function] = {}
        for name in _MODULES:
            module = import_module(f".{name}", __package__)
            found.update({function.name: function for function in module.FUNCTIONS})
            found.update({alias: found[known] for alias, known in module.ALIASES.items()})
        _FUNCTIONS = found  # complete: other threads may be waiting for it
    return _FUNCTIONS


_FUNCTIONS: dict[str, Function] | None = None


def find_function(name: str) -> Function | None:
    """Return the function of a name, in any case."""
    return _table().get(name.lower())


def function_names() -> tuple[str, ...]:
    """Return every name and alias."""
    return tuple(_table())
