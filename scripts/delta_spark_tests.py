"""Run delta-spark's own Python tests with Tahoe: `delta_spark_tests.py --checkout DIR [--only TEXT] [--connect [URL]]`.

DIR is your clone of https://github.com/delta-io/delta; no part of it is in this repository. The four files of `FILES` in
``python/delta/tests`` run unchanged: `tahoe.as_delta` provides the modules ``delta.*``, and a substitute for ``delta.testing.utils``
provides a session with Tahoe enabled. The outcomes are compared with `delta_spark_tests_left.py`, which gives the reason for each
test that cannot pass; a difference in either direction is a failure.

With `--connect`, delta-spark's tests of `DeltaTable` run in a session of Spark Connect: of a server at URL (``sc://host:port``), whose Python
needs no Tahoe, or of one that PySpark starts.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import os
import shutil
import sys
import tempfile
import unittest
import uuid
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import cast

from delta_spark_tests_left import LEFT, LEFT_ON_CONNECT

from tahoe.ops.features.removals import REMOVALS, Removal
from tahoe.protocol.features import FEATURES, TableFeature

FILES = ("test_deltatable", "test_sql", "test_exceptions", "test_exceptions_init")
FILES_ON_CONNECT = ("test_deltatable",)
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "5",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "5",
}


def main() -> int:
    """Run the tests and return 1 if the outcomes differ from the list."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--checkout", type=Path, required=True, help="a clone of github.com/delta-io/delta, at any release from 4.0 on"
    )
    parser.add_argument("--only", default="", help="run only tests whose names contain this")
    parser.add_argument("--connect", nargs="?", const="local[4]", metavar="URL", help="use a session of Spark Connect")
    arguments = parser.parse_args()
    python = arguments.checkout.resolve() / "python" / "delta"
    folder = python / "tests" if arguments.connect is None else python / "connect" / "tests"
    if not folder.is_dir():
        parser.error(f"{folder} is not a folder: pass the root of a clone of delta-io/delta")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    _register_test_features()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)  # the tests write their tables to `spark-warehouse` below it
        outcomes = _outcomes(folder, arguments.only, arguments.connect)
        os.chdir("/")
    return _report(outcomes, arguments.only, LEFT if arguments.connect is None else LEFT_ON_CONNECT)


def _register_test_features() -> None:
    """Add the table features that delta-spark's own builds have for tests: one for writers, two for readers too."""
    removal = REMOVALS["vacuumProtocolCheck"]
    for feature in (
        TableFeature("testRemovableWriter", removal="test"),
        TableFeature("testRemovableReaderWriter", reader=True, removal="test"),
        TableFeature("testReaderWriter", reader=True),
    ):
        cast(dict[str, TableFeature], FEATURES)[feature.name] = feature
        if feature.removal:
            cast(dict[str, Removal], REMOVALS)[feature.name] = removal if feature.reader else replace(removal, uses=None)


def _report(outcomes: dict[str, str], only: str, left: Mapping[str, str]) -> int:
    expected = {test: why for test, why in left.items() if only in test}
    differ = [f"{test}: {outcome}" for test, outcome in outcomes.items() if outcome != "passed" and test not in expected]
    differ += [
        f"{test}: passed, but is in the list of exceptions: {expected[test]}"
        for test in expected
        if outcomes.get(test) == "passed"
    ]
    differ += [f"{test}: is in the list of exceptions, but was not found" for test in expected if test not in outcomes]
    passed = sum(outcome == "passed" for outcome in outcomes.values())
    print(f"\n{passed} of {len(outcomes)} passed; listed exceptions: {len(expected)}; differences from the list: {len(differ)}")
    print("\n".join(differ))
    return min(len(differ), 1)


def _outcomes(folder: Path, only: str, url: str | None) -> dict[str, str]:
    """Return the outcome of each test by ``file.test``: ``passed``, or the first line of the error."""
    from tahoe import as_delta

    as_delta.install()
    if url is None:
        _install_test_case()
    else:
        _install_connect_test_case(url)
        sys.path.append(str(folder.parents[1]))  # these tests import `tests.test_deltatable`
    outcomes: dict[str, str] = {}
    for name in FILES if url is None else FILES_ON_CONNECT:
        if not (folder / f"{name}.py").exists():  # releases before 4.3 have no test_exceptions_init
            outcomes |= {test: "the clone has no such file" for test in LEFT if test.startswith(f"{name}.") and only in test}
            continue
        tests = unittest.defaultTestLoader.loadTestsFromModule(_loaded(folder / f"{name}.py"))
        folders = {folder, folder.parents[1] / "tests"}
        own = unittest.TestSuite(test for test in _single(tests) if _is_of(folders, test) and only in _name(name, test))
        outcome = unittest.TextTestRunner(verbosity=2, resultclass=_Result, warnings="ignore").run(own)
        assert isinstance(outcome, _Result)
        outcomes |= {_name(name, test): text for test, text in outcome.outcomes.items()}
    return outcomes


def _name(file: str, test: unittest.TestCase) -> str:
    return f"{file}.{test.id().rpartition('.')[2]}"


def _single(tests: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from _single(test)
        else:
            yield test


def _is_of(folders: Collection[Path], test: unittest.TestCase) -> bool:
    """Whether a test is defined in a file of the folders; PySpark's base classes contain tests too."""
    return Path(inspect.getfile(inspect.unwrap(getattr(type(test), test.id().rpartition(".")[2])))).parent in folders


def _loaded(file: Path) -> ModuleType:
    """Load a file of tests as a module with a unique name."""
    spec = importlib.util.spec_from_file_location(f"delta_spark_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Result(unittest.TextTestResult):
    """A test result that records the outcome of each test."""

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        self.outcomes: dict[unittest.TestCase, str] = {}

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().addSuccess(test)
        self.outcomes.setdefault(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
        super().addFailure(test, err)  # type: ignore[arg-type]
        self.outcomes[test] = self._last(err)

    def addError(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
        super().addError(test, err)  # type: ignore[arg-type]
        self.outcomes[test] = self._last(err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self.outcomes[test] = f"skipped: {reason}"

    @staticmethod
    def _last(err: object) -> str:
        kind, error = err[:2]  # type: ignore[index]
        return f"{kind.__name__}: {error}".partition("\n")[0]


def _install_test_case() -> None:
    """Install ``delta.testing.utils``, which delta-spark does not ship: a session with Tahoe enabled, and a folder for each test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark import SparkConf
        from pyspark.testing.sqlutils import ReusedSQLTestCase

    import tahoe

    class DeltaTestCase(ReusedSQLTestCase):
        @classmethod
        def conf(cls) -> SparkConf:
            return super().conf().setAppName(cls.__name__).setMaster("local[4]").setAll(list(SETTINGS.items()))

        @classmethod
        def setUpClass(cls) -> None:
            super().setUpClass()
            tahoe.enable(cls.spark)

        def setUp(self) -> None:
            super().setUp()
            self.tempPath = tempfile.mkdtemp()
            self.tempFile = os.path.join(self.tempPath, "tempFile")

        def tearDown(self) -> None:
            super().tearDown()
            shutil.rmtree(self.tempPath, ignore_errors=True)

        @contextmanager
        def tempTable(self) -> Iterator[str]:  # noqa: N802
            name = f"table_{uuid.uuid4().hex}"
            with self.table(name):
                yield name

    testing, utils = ModuleType("delta.testing"), ModuleType("delta.testing.utils")
    testing.__path__ = []  # type: ignore[attr-defined]
    utils.DeltaTestCase = DeltaTestCase  # type: ignore[attr-defined]
    sys.modules |= {"delta.testing": testing, "delta.testing.utils": utils}


def _install_connect_test_case(url: str) -> None:
    """Install ``delta.connect.testing.utils``: a session of Spark Connect with Tahoe enabled, and a folder for each test."""
    from pyspark.sql import SparkSession
    from pyspark.testing.sqlutils import SQLTestUtils

    import tahoe

    class DeltaTestCase(unittest.TestCase, SQLTestUtils):
        @classmethod
        def setUpClass(cls) -> None:
            builder = SparkSession.builder.remote(url)
            for key, value in SETTINGS.items() if url.startswith("local") else ():
                builder = builder.config(key, value)
            cls.spark = tahoe.enable(builder.getOrCreate())

        def setUp(self) -> None:
            self.tempPath = tempfile.mkdtemp()
            self.tempFile = os.path.join(self.tempPath, "tempFile")

        def tearDown(self) -> None:
            shutil.rmtree(self.tempPath, ignore_errors=True)

        @contextmanager
        def tempTable(self) -> Iterator[str]:  # noqa: N802
            name = f"table_{uuid.uuid4().hex}"
            with self.table(name):
                yield name

    # The tests of Connect import those of classic sessions, which import their own session.
    for name in ("delta.connect", "delta.connect.testing", "delta.testing"):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = []
    for name in ("delta.connect.testing.utils", "delta.testing.utils"):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].DeltaTestCase = DeltaTestCase  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
