#!/usr/bin/env bash
# Succeeds when a Java runtime that PySpark 4 accepts (17 or newer) is there; installs one when root on a Debian-like
# system; otherwise says what to do and fails.
set -euo pipefail

MINIMUM=17

java_command() {
    if [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ]; then
        echo "$JAVA_HOME/bin/java"
    else
        command -v java || true
    fi
}

# The major version of the Java in use ("1.8.0_292" is 8), or nothing.
java_major() {
    local java
    java=$(java_command)
    [ -n "$java" ] || return 0
    "$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1
}

enough() {
    local major
    major=$(java_major)
    [ -n "$major" ] && [ "$major" -ge "$MINIMUM" ]
}

if enough; then
    exit 0
fi

found=$(java_major)
echo "Spark needs a Java runtime, version $MINIMUM or newer (found: ${found:-none})." >&2
echo "  Debian, Ubuntu:  apt-get install openjdk-17-jre-headless" >&2
echo "  Fedora:          dnf install java-17-openjdk-headless" >&2
echo "  macOS:           brew install openjdk@17, then set JAVA_HOME" >&2

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "Running as root with apt-get at hand: installing openjdk-17-jre-headless." >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update >&2
    apt-get install --yes --no-install-recommends openjdk-17-jre-headless >&2
    if enough; then
        exit 0
    fi
    echo "openjdk-17-jre-headless is installed, yet the java in use is still '$(java_command)'; check JAVA_HOME and PATH." >&2
fi
exit 1
