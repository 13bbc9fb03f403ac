#!/usr/bin/env bash
# run_tests.sh PYTHON [OPTION...]: run the whole test suite in three parallel processes: the tests that start Spark, the other tests in
# tests/unit, and all others. The output of the latter two follows at the end. Fails if one of the processes fails.
set -euo pipefail
export TAHOE_SAMPLE_CASES=1 # of each test with many cases; `make soak` runs the others
python=$1
shift
output=$(mktemp -d)
trap 'kill $unit $others 2>/dev/null || true; rm -rf "$output"' EXIT

"$python" -m pytest -o cache_dir=.pytest_cache/unit tests/unit -m "not spark and not soak and not jvm and not readers and not clients" "$@" >"$output/unit" 2>&1 &
unit=$!
"$python" -m pytest -o cache_dir=.pytest_cache/core --ignore=tests/unit -m "not spark and not soak and not jvm and not readers and not clients" "$@" >"$output/others" 2>&1 &
others=$!
failed=0
"$python" -m tests.java_options
"$python" -m pytest --ignore=tests/unit -m "spark and not soak and not jvm and not readers and not clients" "$@" || failed=$?
wait "$unit" || failed=$?
wait "$others" || failed=$?
cat "$output/unit" "$output/others"
exit "$failed"
