#!/usr/bin/env bash
# run_tests.sh PYTHON [OPTION...]: the whole test suite, as two processes side by side: the tests in a session of Spark, and the others,
# those among them that start a Spark of their own. What the others print follows at the end. Fails where one of the two does.
set -euo pipefail
python=$1
shift
printed=$(mktemp)
trap 'kill $others 2>/dev/null || true; rm -f "$printed"' EXIT

"$python" -m pytest -o cache_dir=.pytest_cache/core -m "(not spark or own_jvm) and not soak and not jvm and not readers" "$@" >"$printed" 2>&1 &
others=$!
failed=0
"$python" -m pytest --ignore=tests/unit -m "spark and not own_jvm and not soak and not jvm and not readers" "$@" || failed=$?
wait "$others" || failed=$?
cat "$printed"
exit "$failed"
