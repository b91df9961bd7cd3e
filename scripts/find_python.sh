#!/usr/bin/env bash
# Prints the first Python between two minor versions of Python 3 that really runs:  find_python.sh 10 [12]
set -euo pipefail

oldest=$1
newest=${2:-99}

for candidate in python3 python3.12 python3.11 python3.13 python3.10 python3.14 python; do
    if "$candidate" -c "import sys, venv; sys.exit(not (3, $oldest) <= sys.version_info[:2] <= (3, $newest))" 2>/dev/null; then
        command -v "$candidate"
        exit 0
    fi
done
range="3.$oldest or newer"
[ "$newest" -eq 99 ] || range="3.$oldest to 3.$newest"
echo "No Python $range (with its venv module) found; install one, or name it: make ... PYTHON=/path/to/python3" >&2
exit 1
