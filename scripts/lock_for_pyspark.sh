#!/usr/bin/env bash
# lock_for_pyspark.sh RELEASE: print requirements.lock with the PySpark of that release (4.0, 4.1, …) from requirements-pyspark.lock.
set -euo pipefail
cd "$(dirname "$0")/.."
pin=$(grep "^pyspark==$1\." requirements-pyspark.lock) || {
    echo "requirements-pyspark.lock has no line for PySpark $1" >&2
    exit 1
}
awk '/^pyspark==/ { inside = 1; next } inside && /^ / { next } { inside = 0; print }' requirements.lock
echo "$pin"
