"""The compiled part of the build: one extension per ``.pyx`` file below ``src/lancecodec``.

Everything else is in pyproject.toml.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CODEC_DIR = Path("src/lancecodec")
#: Module with what Cython generates for typed memoryviews: in each module, it was most of the code to compile.
SHARED = "lancecodec._memoryviews"

# Kernels read typed values out of byte buffers, hence no strict aliasing. -march=native is left out on purpose:
# kernels are multi-versioned where the compiler can, so one wheel runs everywhere.
UNIX_COMPILE_ARGS = [
    "-O3",
    "-g0",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-unused-function",  # modules include headers of which they use a part
]
MSVC_COMPILE_ARGS = ["/O2"]

DIRECTIVES: dict[str, object] = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": True,
}


def included(source: Path) -> set[Path]:
    """Headers that a file includes, directly or through others."""
    found: set[Path] = set()
    for name in re.findall(r'(?:#include|cdef extern from) "([\w/]+\.h)"', source.read_text(encoding="utf-8")):
        for header in (source.parent / name, CODEC_DIR / name):
            if header.exists() and header not in found:
                found |= {header} | included(header)
    return found


def declarations(source: Path) -> set[Path]:
    """Declarations of other modules that a file imports, directly or through others, and its own."""
    found = {source.with_suffix(".pxd")} if source.with_suffix(".pxd").exists() else set()
    for name in re.findall(r"from (lancecodec[\w.]*) cimport", source.read_text(encoding="utf-8")):
        found.add(Path("src", *name.split(".")).with_suffix(".pxd"))
    return found | {deeper for path in found - {source} for deeper in declarations(path)}


def codec_extensions() -> list[Extension]:
    """One extension for each module of the codec core, rebuilt when a header or declaration that it uses changes."""
    extensions = [Extension(SHARED, [f"src/{SHARED.replace('.', '/')}.c"])]
    for source in sorted(CODEC_DIR.rglob("*.pyx")):
        declared = declarations(source)
        depends = declared | {header for path in (source, *declared) for header in included(path)}
        name = ".".join(source.relative_to("src").with_suffix("").parts)
        extensions.append(
            Extension(
                name,
                [source.as_posix()],
                include_dirs=[CODEC_DIR.as_posix()],
                depends=sorted(path.as_posix() for path in depends),
            )
        )
    return extensions


class BuildExt(build_ext):
    """Adds the flags of the compiler in use (CFLAGS may say how to optimise), and compiles in parallel.

    Large modules come first, so that no processor is idle at the end. A line is printed for each compiled module.
    """

    done = 0

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.editable_mode:
            # the folders of `build_ext --inplace` instead of temporary ones: only what has changed is compiled
            build = self.get_finalized_command("build")
            place = f"{build.plat_name}-{sys.implementation.cache_tag}"
            self.build_lib = os.path.join(build.build_base, f"lib.{place}")
            self.build_temp = os.path.join(build.build_base, f"temp.{place}")
        if self.parallel is None:
            self.parallel = os.cpu_count() or 1

    def build_extensions(self) -> None:
        flags = MSVC_COMPILE_ARGS if self.compiler.compiler_type == "msvc" else UNIX_COMPILE_ARGS
        if re.search(r"(^|\s)-O", os.environ.get("CFLAGS", "")):  # these flags come later on the command line, and win
            flags = [flag for flag in flags if flag not in ("-O3", "-g0")]
        for extension in self.extensions:
            extension.extra_compile_args = [*flags, *(extension.extra_compile_args or [])]
        self.extensions.sort(key=lambda extension: Path(extension.sources[0]).stat().st_size, reverse=True)
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        built = Path(self.get_ext_fullpath(ext.name))
        before = built.stat().st_mtime_ns if built.exists() else 0
        super().build_extension(ext)
        self.done += 1
        if built.exists() and built.stat().st_mtime_ns != before:
            print(f"[{self.done}/{len(self.extensions)}] Compiled {ext.name}", flush=True)


if __name__ == "__main__":  # processes that translate modules may import this file
    processors = os.cpu_count() or 1
    setup(
        ext_modules=cythonize(
            codec_extensions(),
            compiler_directives=DIRECTIVES,
            include_path=["src"],
            shared_utility_qualified_name=SHARED,
            nthreads=processors if sys.platform == "linux" else 0,
        ),
        cmdclass={"build_ext": BuildExt},
    )
