"""Check the words of docstrings and error messages.

A docstring begins with a verb (functions) or a noun, not with a question word or a pronoun such as "What" or "Those".
Docstrings and the messages of raise statements say "is not a", never "is no". "There is no", "is no longer", "is none
of" and comparisons such as "is no larger" are allowed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src/lance_dataset", "src/lancecodec", "tests")
FIRST_WORD = re.compile(r"(?:What|Which|Whether|How|Why|That|Those|Who)\b")
IS_NO = re.compile(r"(?<!\b[Tt]here )\b(?:is|are) (?:no\b(?! (?:more|less|\w+er)\b|-)|none\b(?! of\b))")
SUFFIXES = {".py", ".pyi", ".pyx", ".pxd"}
TEXT = re.compile(r'"""(.*?)"""|^\s*raise (.*?)$', re.DOTALL | re.MULTILINE)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def python_texts(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the line, the text and a flag, true for docstrings, of all docstrings and strings in raise statements."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            yield node.body[0].lineno, ast.get_docstring(node) or "", True
        elif isinstance(node, ast.Raise):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value, False


def cython_texts(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the same texts of Cython code: triple-quoted strings, and the first lines of raise statements."""
    for match in TEXT.finditer(source):
        yield source.count("\n", 0, match.start()) + 1, match[1] or match[2] or "", match[1] is not None


def problems(path: Path) -> Iterator[str]:
    """Yield a message for each text of a file that breaks a rule."""
    source = path.read_text(encoding="utf-8")
    texts = cython_texts(source) if path.suffix in (".pyx", ".pxd") else python_texts(source)
    for line, text, is_docstring in texts:
        words = " ".join(text.split())
        first = FIRST_WORD.match(words) if is_docstring else None
        if first:
            yield f"{path}:{line}: a docstring must begin with a verb or a noun, not with {first[0]!r}"
        for found in IS_NO.finditer(words):
            yield f"{path}:{line}: write 'not a' instead of {words[found.start() : found.end() + 15]!r}"


def main() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.p*")) if path.suffix in SUFFIXES]
    found = [message for path in files if "_proto" not in path.parts for message in problems(path)]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
