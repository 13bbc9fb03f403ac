"""Run PyIceberg's own integration tests that write through a REST catalog: `pyiceberg_tests.py --checkout DIR [--only TEXT]`.

DIR is your clone of https://github.com/apache/iceberg-python at the release that is installed; no part of it is in this repository. The
tests run unchanged against `tahoe serve --writable` on port 8181, which they expect, in a folder of this process. Tests that need
another service (Spark Connect, Hive) are skipped where they use it; test_add_files, which writes to MinIO throughout, is left out.
Failures are grouped by `REASONS`; one without a reason fails the run.

Needs pytest-lazy-fixtures, pytest-mock, boto3, moto, s3fs and thrift, as the tests do.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PORT = 8181
NAMESPACES = ("default",)
FILES = (
    *("test_catalog", "test_rest_catalog", "test_rest_schema", "test_snapshot_operations", "test_statistics_operations"),
    *("test_deletes", "test_delete_count", "test_inspect_table", "test_sort_order_update"),
    *("test_writes/test_writes", "test_writes/test_partitioned_writes", "test_writes/test_optimistic_concurrency"),
)
SERVICES = {"spark": "Spark Connect", "session_catalog_hive": "Hive", "hive_catalog": "Hive"}
REASONS = (
    (r"the partition transform '", "partition transforms other than identity are not translated"),
    (r"a sort order", "Delta tables have no sort order"),
    (r"add-spec|set-default-spec|another partitioning", "the partitioning of a Delta table stays"),
    (r"the (tag|branch) '|remove-snapshot-ref", "a Delta table has the branch main alone"),
    (r"DELTA_UNSUPPORTED_DATA_TYPES", "Delta lacks a type of the table"),
    (r"enableTypeWidening|cannot change from (string|binary)", "Delta's rules for types that change"),
    (r"has an initial default", "Delta has no initial defaults"),
    (r"NESTED_NOT_NULL", "Delta has no NOT NULL inside lists and maps"),
    (r"TAHOE_TABLE_NAME", "folders that begin with _ are hidden"),
    (
        r"There is no table 'test_(table_snapshot_operations|partitioned_by|empty|null)",
        "needs tables that PyIceberg's Docker image creates",
    ),
    (r"in bucket 'warehouse'|bucket does not exist|localhost:9000", "needs MinIO"),
    (r"assert 1 == 2\s.*schema_id", "several schemas of one commit become one"),
    (r"ion\.OVERWRITE\] == \[Operation", "several snapshots of one request become the last one"),
    (r"_parse_metadata_version", "metadata files have the names of tables without a catalog"),
    (r"rename-my_iceberg_table", "the metadata of a renamed table is written again"),
    (r"TAHOE_ICEBERG_LOCATION", "a table has the name of its folder"),
    (r"_namespace_separator|assert '\\x1f'", "needs a server with another separator of namespaces"),
    (r"endpoint|not supported by this server", "the endpoint is not supported"),
)
"""Texts of errors, and why the test cannot pass."""


class Service:
    """A fixture for a service that is not there: a test is skipped once it uses it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        pytest.skip(f"needs {self._name}")


class Outcomes:
    """A plugin of pytest that replaces fixtures of services, and records the outcome of each test."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> object:
        """Return the replacement of a service's fixture; None for any other."""
        if fixturedef.argname not in SERVICES:
            return None
        service = Service(SERVICES[fixturedef.argname])
        fixturedef.cached_result = (service, fixturedef.cache_key(request), None)  # type: ignore[arg-type]
        return service

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that cannot be imported."""
        if report.failed:
            self.outcomes[report.nodeid] = f"not imported: {report.longreprtext.splitlines()[-1]}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record ``passed``, or the reason of a skip, or the line of the error."""
        test = report.nodeid.rpartition("integration/")[2]
        if report.skipped and isinstance(report.longrepr, tuple):
            self.outcomes[test] = f"skipped: {report.longrepr[2].removeprefix('Skipped: ')}"
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.outcomes[test] = str(crash.message if crash is not None else report.longrepr)
        elif report.when == "call":
            self.outcomes.setdefault(test, "passed")


def main() -> int:
    """Run the tests and return 1 if one fails without a listed reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkout", type=Path, required=True, help="a clone of github.com/apache/iceberg-python")
    parser.add_argument("--only", default="", help="run only tests whose names match this expression of pytest -k")
    arguments = parser.parse_args()
    folder = arguments.checkout.resolve() / "tests" / "integration"
    if not folder.is_dir():
        parser.error(f"{folder} is not a folder: pass the root of a clone of apache/iceberg-python")
    plugin, files = Outcomes(), [str(folder / f"{name}.py") for name in FILES if (folder / f"{name}.py").exists()]
    options = [
        "-q",
        "--no-header",
        "--tb=no",
        "--continue-on-collection-errors",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--rootdir",
        str(folder.parents[1]),
    ]
    sys.path[:0] = [
        str(arguments.checkout.resolve()),
        str(folder / "test_writes"),
    ]  # the tests import `tests` and `utils` from there
    with tempfile.TemporaryDirectory() as root, served(Path(root)):
        pytest.main([*options, "-W", "ignore", "-k", arguments.only, *files], plugins=[plugin])
    return report(plugin.outcomes)


@contextmanager
def served(root: Path) -> Iterator[None]:
    """Serve a folder at the address that the tests expect."""
    for name in NAMESPACES:
        (root / name).mkdir()
    command = [sys.executable, "-m", "tahoe", "serve", "--iceberg", str(root), "--port", str(PORT), "--writable"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, text=True) as process:
        try:
            assert process.stdout is not None
            if "http" not in process.stdout.readline():
                raise SystemExit(f"the server did not start: is port {PORT} taken?")
            yield
        finally:
            process.terminate()


def report(outcomes: dict[str, str]) -> int:
    """Print the tests by outcome, and return 1 if one has no reason."""
    groups: dict[str, list[str]] = defaultdict(list)
    unexplained: list[str] = []
    for test, outcome in outcomes.items():
        listed = next((reason for text, reason in REASONS if re.search(text, outcome, re.DOTALL)), None)
        if outcome == "passed" or outcome.startswith("skipped: "):
            groups[outcome].append(test)
        elif listed is not None:
            groups[listed].append(test)
        else:
            unexplained.append(f"{test}: {' '.join(outcome.split())[:300]}")
    for name, tests in sorted(groups.items(), key=lambda group: -len(group[1])):
        print(f"{len(tests):5} {name}")
    print(f"{len(unexplained):5} without a reason")
    print("\n".join(unexplained))
    return min(len(unexplained), 1)


if __name__ == "__main__":
    sys.exit(main())
