"""No module of the codec core without a stub, tests, a benchmark and a fuzz target; no kernel longer than a screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODEC = ROOT / "src" / "lancecodec"
#: Shared by the modules and tested through them: the caller's memory, the exception, the words for problem numbers.
SHARED = {"__init__", "buffers", "errors", "problems"}
MODULES = sorted({path.stem for path in [*CODEC.glob("*.pyx"), *CODEC.glob("*.py")]} - SHARED)
HEADERS = sorted((CODEC / "kernels").glob("*.h"))
LONGEST_FUNCTION = 60


def users(module: str, folder: str, name: str) -> list[str]:
    """Files that import the module."""
    listed = rf"from lancecodec import (\([^)]*|[^\n(]*)\b{module}\b"
    pattern = re.compile(rf"^\s*({listed}|(from|import) lancecodec\.{module}\b)", re.MULTILINE)
    paths = sorted((ROOT / folder).glob(name))
    return [path.name for path in paths if pattern.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_everything(module: str) -> None:
    assert (CODEC / f"{module}.py").exists() or (CODEC / f"{module}.pyi").exists(), "no stub"
    assert users(module, "tests/codec", "test_*.py"), "no tests"
    assert users(module, "benchmarks/kernel_cases", "*.py"), "no benchmark"
    assert users(module, "tests/fuzz/codec_targets", "*.py"), "no fuzz target"


@pytest.mark.parametrize("module", MODULES)
def test_every_module_is_in_the_readme(module: str) -> None:
    assert f"`{module}`" in (CODEC / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_every_kernel_header_is_in_the_readme(header: Path) -> None:
    assert f"`{header.name}`" in (CODEC / "README.md").read_text(encoding="utf-8")


def included(path: Path) -> set[str]:
    """Headers that a C file includes, directly or through others."""
    found: set[str] = set()
    for name in re.findall(r'#include "(\w+\.h)"', path.read_text(encoding="utf-8")):
        for folder in (path.parent, CODEC / "kernels"):
            if (folder / name).exists():
                found |= {name} | included(folder / name)
                break
    return found


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_every_kernel_header_is_fuzzed(header: Path) -> None:
    targets = sorted((ROOT / "tests" / "fuzz" / "kernels").glob("*.c"))
    assert any(header.name in included(target) for target in targets)


def test_every_name_stands_for_one_thing() -> None:
    """Headers must be usable together."""
    kinds = (r"^(?:LC_CLONES |LC_INLINE |static |inline )+[\w *]*?(\w+)\(", r"^} (\w+);", r"^#define (\w+)")
    homes: dict[str, set[str]] = {}
    for header in HEADERS:
        for kind in kinds:
            for name in re.findall(kind, header.read_text(encoding="utf-8"), re.MULTILINE):
                homes.setdefault(name, set()).add(header.name)
    assert len(homes) > 500
    assert not {name: where for name, where in homes.items() if len(where) > 1}


def functions(text: str) -> list[tuple[str, int]]:
    """First line and number of lines of each function body of a header: from a `{` at the end of a declaration that
    begins in the first column to the `}` in the first column.
    """
    found = []
    lines = text.splitlines()
    begin = None
    for number, line in enumerate(lines):
        if begin is None and re.match(r"[A-Za-z]", line) and not re.match(r"(typedef|struct|enum|union)\b", line):
            begin = number
        if begin is not None and re.search(r"[;}]\s*$", line) and line[:1] not in ("}", " ", "\t"):
            begin = None  # a prototype, or a function of one line
        if line.startswith("}") and begin is not None:
            found.append((lines[begin], number - begin + 1))
            begin = None
    return found


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_kernels_fit_a_screen(header: Path) -> None:
    long = [found for found in functions(header.read_text(encoding="utf-8")) if found[1] > LONGEST_FUNCTION]
    assert not long


def test_functions_are_found() -> None:
    text = "LC_INLINE int a(void) { return 1; }\n\nstatic inline int b(int x,\n        int y) {\n    return x;\n}\n"
    assert functions(text) == [("static inline int b(int x,", 4)]
