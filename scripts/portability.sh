#!/usr/bin/env bash
# Compile every kernel header with every compiler that is here, warnings as errors, then run the fuzz targets of the
# kernels with random inputs: with gcc, with clang, without vector instructions beyond the baseline, and, if the cross
# compiler is here, for aarch64 under qemu. Says what it leaves out.
#   apt-get install clang gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
inputs=${INPUTS:-1500}
kernels=src/lancecodec/kernels
warnings="-std=gnu11 -O3 -Wall -Wextra -Wno-unused-function -Werror"
status=0

headers() { # compiler...
    local header
    for header in "$kernels"/*.h; do
        # shellcheck disable=SC2086
        if ! "$@" $warnings -I "$kernels" -x c -c -o /dev/null - <<<"#include \"$(basename "$header")\""; then
            echo "FAILED: $* $(basename "$header")"
            status=1
        fi
    done
    # shellcheck disable=SC2086
    if ! (cd "$kernels" && printf '#include "%s"\n' *.h) | "$@" $warnings -I "$kernels" -x c -c -o /dev/null -; then
        echo "FAILED: $* all headers together"
        status=1
    fi
    echo "$*: $(ls "$kernels"/*.h | wc -l) headers"
}

targets() { # what runs them, compiler...
    local runner=$1
    shift
    "$python" scripts/fuzz_kernels.py --standalone --inputs "$inputs" --cc "$*" --run "$runner" || status=1
}

present() {
    command -v "$1" >/dev/null || { echo "left out: $1 is not installed"; return 1; }
}

for compiler in gcc clang; do
    if present "$compiler"; then
        headers "$compiler"
        targets "" "$compiler"
    fi
done
if present aarch64-linux-gnu-gcc; then
    headers aarch64-linux-gnu-gcc
    if present qemu-aarch64; then targets "qemu-aarch64 -L /usr/aarch64-linux-gnu" aarch64-linux-gnu-gcc; fi
fi
exit "$status"
