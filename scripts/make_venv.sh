#!/usr/bin/env bash
# make_venv.sh DIRECTORY: create a virtual environment with a supported Python, unless a working one exists.
# The Python is $PYTHON, or the first supported one of python3, python3.14 … python3.11.
set -euo pipefail
directory=$1
oldest="3.11"

fail() {
    echo "$*" >&2
    exit 1
}

new_enough() {
    "$1" -c "import sys; sys.exit(sys.version_info < tuple(map(int, '$oldest'.split('.'))))" 2>/dev/null
}

if [ -x "$directory/bin/python" ] && new_enough "$directory/bin/python"; then
    exit 0
fi

python=
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || fail "Tahoe needs Python $oldest or newer, and ${PYTHON:-python3} is not: install one, or name it with PYTHON=/path/to/python make setup."

if ! "$python" -c "import ensurepip, venv" 2>/dev/null; then
    version=$("$python" -c "import sys; print('%d.%d' % sys.version_info[:2])")
    "$(dirname "$0")/apt_install.sh" "python$version-venv" ||
        fail "Python $version cannot create virtual environments: install Debian's package python$version-venv and run this again."
fi
"$python" -m venv --clear "$directory"
