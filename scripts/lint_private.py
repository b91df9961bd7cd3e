"""Check that no room reaches into the private names of another.

A private attribute (``x._name``) must be defined in the room of the module that uses it, even in a subclass of a class
of another room, and no module may import a private name from another module.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "lance_dataset"


#: Names of other libraries that are meant to be called, and those of their classes that subclasses here need.
ALLOWED = {
    "_getframe",
    "_import_from_c",
    "_import_from_c_capsule",
    "_replace",
    "_jreader",  # of pyspark.sql.DataFrameReader
    "_spark",
    "_jsparkSession",  # of pyspark.sql.SparkSession
    "_jwrite",  # of pyspark.sql.DataFrameWriter
    "_1",  # of scala.Tuple2
    "_2",
    "_threads",  # of concurrent.futures.ThreadPoolExecutor
    "_threads_queues",  # of its module
    "_work_queue",
}


def room_of(path: Path) -> str:
    """Return the room of a module: the folder below the package, or the module itself at the root."""
    return path.relative_to(PACKAGE).parts[0]


def is_private(name: str) -> bool:
    """Return True if a name starts with one underscore."""
    return name.startswith("_") and not name.startswith("__") and name != "_"


def defined_names(tree: ast.AST) -> Iterator[str]:
    """Yield the private names that a module defines: attributes of self and cls, methods, fields, slots, names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # slots, and names given to setattr


def accesses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each private attribute that is accessed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.lineno, node.attr


def private_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each private name that is imported from a module of the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lance_dataset"):
            for alias in node.names:
                if is_private(alias.name) and alias.name not in ("_version", "_proto"):
                    yield node.lineno, alias.name


def main() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    trees = {path: tree for path, tree in trees.items() if room_of(path) != "_proto"}
    known: dict[str, set[str]] = {}
    for path, tree in trees.items():
        known.setdefault(room_of(path), set()).update(filter(is_private, defined_names(tree)))
    found = []
    for path, tree in trees.items():
        for line, name in accesses(tree):
            if name not in known[room_of(path)] | ALLOWED:
                found.append(f"{path}:{line}: {name} is private to another room")
        found += [f"{path}:{line}: {name} is private to another module" for line, name in private_imports(tree)]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
