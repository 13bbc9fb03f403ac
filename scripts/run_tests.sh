#!/usr/bin/env bash
# run_tests.sh PYTHON [OPTION...]: run the whole test suite in two parallel processes: the tests that start Spark, and all others.
# The output of the others follows at the end. Fails if either process fails.
set -euo pipefail
export TAHOE_SAMPLE_CASES=1 # of each test with many cases; `make soak` runs the others
python=$1
shift
output=$(mktemp)
trap 'kill $others 2>/dev/null || true; rm -f "$output"' EXIT

"$python" -m pytest -o cache_dir=.pytest_cache/core -m "not spark and not soak and not jvm and not readers and not clients" "$@" >"$output" 2>&1 &
others=$!
failed=0
"$python" -m tests.java_options
"$python" -m pytest --ignore=tests/unit -m "spark and not soak and not jvm and not readers and not clients" "$@" || failed=$?
wait "$others" || failed=$?
cat "$output"
exit "$failed"
