#!/usr/bin/env bash
# Run tests of the codec core on an emulated processor without AVX2 (Nehalem, 2008), in the environment of `make test`:
# those that do not need pylance, which has instructions that this processor lacks. Emulation is much slower.
# Arguments are files to test, and options of pytest.
#   apt-get install qemu-user
set -euo pipefail
cd "$(dirname "$0")/.."
command -v qemu-x86_64 >/dev/null || { echo "qemu-x86_64 is not installed: apt-get install qemu-user" >&2; exit 1; }
python=${PYTHON:-.venv/bin/python}
paths=$("$python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
export PYTHONPATH="$PWD/src:$PWD/tests:$paths" OPENBLAS_CORETYPE=Nehalem
if [ $# -eq 0 ]; then
    mapfile -t files < <(grep -rLE "^(import|from) (lance\b|support\.pages)" tests/codec --include="test_*.py")
    set -- "${files[@]}"
fi
exec qemu-x86_64 -cpu Nehalem "$(readlink -f "$python")" -m pytest -q -p no:cacheprovider --timeout 0 "$@"
