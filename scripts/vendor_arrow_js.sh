#!/usr/bin/env bash
# Writes src/lance_dataset/viewer/static/arrow.js, Apache Arrow's build for browsers, and the licenses of what is in it.
# Needs npm. The files are committed, so that nobody else does.
set -euo pipefail
cd "$(dirname "$0")/.."

VERSION=21.2.0
TARGET=$PWD/src/lance_dataset/viewer/static

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --ignore-scripts --no-audit --no-fund --loglevel=error "apache-arrow@$VERSION"
grep -v '^//# sourceMappingURL=' node_modules/apache-arrow/Arrow.es2015.min.js >"$TARGET/arrow.js"
{
    echo "arrow.js is Apache Arrow $VERSION for browsers, with flatbuffers, tslib and json-with-bigint. Their licenses:"
    for file in apache-arrow/NOTICE.txt apache-arrow/LICENSE.txt flatbuffers/LICENSE tslib/LICENSE.txt json-with-bigint/LICENSE; do
        printf '\n---- %s ----\n\n' "$file"
        cat "node_modules/$file"
    done
} >"$TARGET/arrow.LICENSE.txt"
