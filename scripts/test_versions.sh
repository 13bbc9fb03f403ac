#!/usr/bin/env bash
# test_versions.sh ENVIRONMENT... [-- OPTION...]: run the tests that start Spark in each virtual environment, each with its own PySpark.
# Two run in parallel; the output of each is printed when it ends. Options go to pytest. Fails if one of them fails.
set -euo pipefail
environments=()
while [ $# -gt 0 ] && [ "$1" != "--" ]; do
    environments+=("$1")
    shift
done
shift || true
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT

run_in() {
    environment=$1
    shift
    log=$output/$(basename "$environment")
    failed=0
    PYSPARK_PYTHON=$PWD/$environment/bin/python "$environment/bin/python" -m pytest -o cache_dir=".pytest_cache/$(basename "$environment")" \
        --ignore=tests/unit -m "spark and not soak" "$@" >"$log" 2>&1 || failed=$?
    echo "== PySpark $("$environment/bin/python" -c 'import importlib.metadata as m; print(m.version("pyspark"))')"
    cat "$log"
    return "$failed"
}
export output
export -f run_in
printf '%s\0' "${environments[@]}" | xargs -0 -P 2 -I '{}' bash -euo pipefail -c 'run_in "$@"' run_in '{}' "$@"
