"""Fuzz the C kernels with libFuzzer; each file of ``tests/fuzz/kernels/*.c`` is one target.

Each target cuts arguments from the fuzzer's bytes, calls decoders with them, and compares encoders with decoders. It is
built with the address and undefined-behaviour sanitizers of clang. With ``--standalone``, any C compiler builds the
targets with a main function that feeds random bytes. This is for machines without libFuzzer and, with ``--run``, for
other processors.

Inputs that ever failed are in ``tests/fuzz/corpus/<target>/``. Every run begins with them; standalone targets then
change bytes of them at random, too. An input that fails is stored in ``build/fuzz``; move it to the corpus when it is
fixed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ROOT / "tests" / "fuzz" / "kernels"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
KERNELS = ROOT / "src" / "lancecodec" / "kernels"
COMMON = ["-g", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-function", "-fno-omit-frame-pointer"]
CHECKS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


def targets(pattern: str) -> list[Path]:
    found = [path for path in sorted(TARGETS.glob("*.c")) if pattern in path.stem]
    if not found:
        raise SystemExit(f"no target has {pattern!r} in its name")
    return found


def build(source: Path, scratch: Path, options: argparse.Namespace) -> Path:
    """Compile one target."""
    program = scratch / source.stem
    kind = ["-DFUZZ_STANDALONE", *shlex.split(options.cflags)] if options.standalone else ["-fsanitize=fuzzer", *CHECKS]
    command = [*shlex.split(options.cc), *COMMON, *kind, f"-I{KERNELS}", str(source), "-o", str(program), "-lm"]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit(f"{source.name} does not compile: {shlex.join(command)}")
    return program


def run(program: Path, options: argparse.Namespace) -> tuple[str, int]:
    """Run one target; return its final output and its exit status."""
    crashes = ROOT / "build" / "fuzz"
    crashes.mkdir(parents=True, exist_ok=True)
    command = [*shlex.split(options.run), str(program)]
    failed_before = sorted((CORPUS / program.name).glob("*"))
    if options.standalone:
        failing = crashes / f"{program.name}-{options.seed}"
        command += [str(options.inputs), str(options.seed), str(failing), *map(str, failed_before)]
    else:
        corpus = program.with_suffix(".corpus")
        corpus.mkdir()
        for path in failed_before:
            shutil.copy(path, corpus)
        command += [str(corpus), f"-max_total_time={options.seconds}", "-max_len=6000", "-len_control=20"]
        command += [f"-artifact_prefix={crashes}/{program.name}-", "-print_final_stats=1", f"-seed={options.seed or 1}"]
    environment = {**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1", "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, errors="replace")
    output = done.stdout + done.stderr
    if done.returncode:
        return output[-6000:], done.returncode
    tried = [line.split()[-1] for line in output.splitlines() if "number_of_executed_units" in line]
    return f"{tried[0]} inputs" if tried else output.strip(), 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="", help="targets whose name contains this")
    parser.add_argument("--seconds", type=int, default=20, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cc", default=os.environ.get("CLANG", "clang"), help="compiler; clang unless --standalone")
    parser.add_argument("--standalone", action="store_true", help="random bytes instead of libFuzzer, any compiler")
    parser.add_argument("--inputs", type=int, default=2000, help="inputs of each standalone target")
    parser.add_argument("--cflags", default="", help="more flags for the compiler of standalone targets")
    parser.add_argument(
        "--run", default="", help="command that runs the targets, such as 'qemu-aarch64 -L /usr/aarch64-linux-gnu'"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if shutil.which(shlex.split(options.cc)[0]) is None:
        raise SystemExit(f"{options.cc} is not installed; libFuzzer needs clang (or use --standalone --cc gcc)")
    failed = []
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        sources = targets(options.pattern)
        programs = list(pool.map(lambda source: build(source, Path(scratch), options), sources))
        for source, (words, status) in zip(sources, pool.map(lambda p: run(p, options), programs), strict=True):
            print(f"{source.stem:20} {words if not status else 'FAILED'}", flush=True)
            if status:
                failed.append(source.stem)
                print(words, file=sys.stderr)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}; the inputs are in build/fuzz")


if __name__ == "__main__":
    main()
