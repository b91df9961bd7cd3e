"""Tests that every codec module has a stub, docstrings, tests, a benchmark and a fuzz target, and short kernels."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODEC = ROOT / "src" / "lancecodec"
#: Modules shared by the others and tested through them: buffers of the caller, the exception, texts of problems.
SHARED = {"__init__", "buffers", "errors", "problems"}


def dotted(path: Path) -> str:
    """Return the name of a module below `lancecodec`."""
    return ".".join(path.relative_to(CODEC).with_suffix("").parts)


PATHS = sorted(path for path in [*CODEC.rglob("*.pyx"), *CODEC.rglob("*.py")])
MODULES = sorted({dotted(path) for path in PATHS if path.stem not in SHARED})
HEADERS = sorted((CODEC / "kernels").glob("*.h"))
LONGEST_FUNCTION = 60


def users(module: str, folder: str, name: str) -> list[str]:
    """Return the files that import the module."""
    package, _, stem = f"lancecodec.{module}".rpartition(".")
    listed = rf"from {package} import (\([^)]*|[^\n(]*)\b{stem}\b"
    pattern = re.compile(rf"^\s*({listed}|(from|import) lancecodec\.{module}\b)", re.MULTILINE)
    paths = sorted((ROOT / folder).rglob(name))
    return [path.name for path in paths if pattern.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_everything(module: str) -> None:
    source = CODEC / module.replace(".", "/")
    assert source.with_suffix(".py").exists() or source.with_suffix(".pyi").exists(), "no stub"
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
    """Return the headers that a C file includes, directly or through others."""
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


def bodies() -> dict[str, str]:
    """Text of each function and macro of the kernels, by its name."""
    found: dict[str, str] = {}
    for header in HEADERS:
        name = None
        for part in re.split(r"\n(?=\S)", header.read_text(encoding="utf-8")):
            begin = re.match(r"#define (\w+)|[A-Za-z][\w *]*?\b(\w+)\(", part)
            if begin:
                name = begin[1] or begin[2]
            if name:
                found[name] = found.get(name, "") + part
    return found


def reached_by_targets() -> set[str]:
    """Functions that the libFuzzer targets call, themselves or through others."""
    texts, reached = bodies(), set[str]()
    paths = (ROOT / "tests" / "fuzz" / "kernels").glob("*.[ch]")
    left = {name for path in paths for name in re.findall(r"\blc_\w+", path.read_text(encoding="utf-8"))}
    while left:
        reached |= left
        left = {name for known in left for name in re.findall(r"\b[lL][cC]_\w+", texts.get(known, ""))} - reached
    return reached


@pytest.mark.parametrize(
    "module", [dotted(path) for path in PATHS if path.suffix == ".pyx" and path.stem not in SHARED]
)
def test_every_kernel_of_a_module_is_fuzzed(module: str) -> None:
    """Under libFuzzer, where memory is checked at every access, not only through the module."""
    source = CODEC / module.replace(".", "/")
    sources = [path for path in (source.with_suffix(".pyx"), source.with_suffix(".pxd")) if path.exists()]
    externs = re.compile(r'cdef extern from "kernels/[^"]*"(?: nogil)?:\n((?:[ \t]+.*\n|\n)*)')
    blocks = [block for path in sources for block in externs.findall(path.read_text(encoding="utf-8"))]
    kernels = {name for block in blocks for name in re.findall(r"\b(lc_\w+)\(", block)}
    assert kernels
    assert not kernels - reached_by_targets()


def test_every_name_stands_for_one_thing() -> None:
    """Names in the headers are unique, so that all headers can be used together."""
    kinds = (r"^(?:LC_CLONES |LC_INLINE |static |inline )+[\w *]*?(\w+)\(", r"^} (\w+);", r"^#define (\w+)")
    homes: dict[str, set[str]] = {}
    for header in HEADERS:
        for kind in kinds:
            for name in re.findall(kind, header.read_text(encoding="utf-8"), re.MULTILINE):
                homes.setdefault(name, set()).add(header.name)
    assert len(homes) > 500
    assert not {name: where for name, where in homes.items() if len(where) > 1}


def functions(text: str) -> list[tuple[str, int]]:
    """Return the first line and the number of lines of each function body of a header.

    A body goes from a `{` at the end of a declaration that starts in the first column to the `}` in the first column.
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


def public_members() -> list[tuple[str, object, type | None]]:
    """Return name, object and class, if any, of every public function, class, method and attribute at run time."""
    found: list[tuple[str, object, type | None]] = []
    for path in PATHS:
        owner = dotted(path).removesuffix("__init__").removesuffix(".")
        module = importlib.import_module(f"lancecodec.{owner}" if owner else "lancecodec")
        found.append((owner or path.stem, module, None))
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            found.append((f"{owner}.{name}", value, None))
            if inspect.isclass(value):
                members = [key for key in dir(value) if not key.startswith("_") and key not in dir(Exception)]
                found += [(f"{owner}.{name}.{key}", getattr(value, key), value) for key in members]
    return found


def documentation(value: object) -> str:
    """Return the docstring of an object without the signature that Cython puts in front."""
    first, _, rest = (inspect.getdoc(value) or "").partition("\n")
    return rest.strip() if re.fullmatch(r"[\w.]+\(.*\)", first) else f"{first}\n{rest}".strip()


PUBLIC = public_members()


@pytest.mark.parametrize(("name", "value", "owner"), PUBLIC, ids=[name for name, _, _ in PUBLIC])
def test_help_shows_a_docstring(name: str, value: object, owner: type | None) -> None:
    """Every public member has a docstring with a section on its parameters.

    C attributes cannot have a docstring, so their class describes them.
    """
    text = documentation(value)
    if owner is not None and not text:
        text = documentation(owner).partition("\nAttributes\n")[2]
        assert re.search(rf"^(\w+, )*{name.rpartition('.')[2]}\b.* : ", text, re.MULTILINE)
    assert text
    if callable(value) and not inspect.isclass(value):
        parameters = set(inspect.signature(value).parameters) - {"self"}
        section = re.split(r"\n\w+\n-+\n", text.partition("\nParameters\n")[2])[0]
        described = {
            item for line in re.findall(r"^(\w+(?:, \w+)*)$", section, re.MULTILINE) for item in line.split(", ")
        }
        assert parameters <= described, "parameters without a description"


def test_every_public_member_is_found() -> None:
    assert len(PUBLIC) > 200
    assert {"bitmap.pack", "fsst.SymbolTable", "fsst.SymbolTable.decode", "general.compress"} <= {
        name for name, _, _ in PUBLIC
    }


@pytest.mark.parametrize("stub", sorted(CODEC.rglob("*.pyi")), ids=lambda path: path.name)
def test_stubs_have_no_docstrings(stub: Path) -> None:
    """Stubs have no docstrings: those are in the compiled modules, where help() shows them."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    strings = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    assert not strings


@pytest.mark.parametrize("stub", sorted(CODEC.rglob("*.pyi")), ids=lambda path: path.name)
def test_stubs_match_the_modules(stub: Path) -> None:
    """Every class, function and method of a stub exists at run time."""
    module = importlib.import_module(f"lancecodec.{dotted(stub)}")
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            owner = getattr(module, node.name)
            for inner in node.body if isinstance(node, ast.ClassDef) else []:
                assert not isinstance(inner, ast.FunctionDef) or hasattr(owner, inner.name)
