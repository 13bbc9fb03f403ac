"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[3]
PLUGIN = ("-p", "tahoe.testing.pytest_plugin", "-p", "no:cacheprovider", "-W", "error")


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_the_fixtures_give_each_test_tables_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os
        import tahoe

        def test_path(delta_path, tmp_path):
            assert os.listdir(tmp_path) == []
            tahoe.Table.create(delta_path, {"id": "long"})

        def test_table(delta_table, delta_path):
            assert not tahoe.Table(delta_path).exists()
            assert delta_table([{"id": 1}]).to_arrow().num_rows == 1
        """
    )
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=2)


def test_a_failed_assertion_shows_the_difference_and_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from tahoe.testing.assertions import assert_rows

        def test_rows(delta_table):
            assert_rows(delta_table([{"id": 1}]), [{"id": 2}])
        """
    )
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"E\s+1 row missing:", r"E\s+- \{'id': 2\}", r"E\s+1 row not expected:", r"E\s+\+ \{'id': 1\}"])
    result.stdout.no_re_match_line(r".*def _compare.*")


@pytest.mark.parametrize(("setting", "outcome"), [("error", {"errors": 1}), ("skip", {"skipped": 1})])
def test_without_java_delta_spark_is_an_error_or_skips(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, setting: str, outcome: dict[str, int]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(pytester.path))
    pytester.makeini(f"[pytest]\ndelta_spark_missing = {setting}\n")
    pytester.makepyfile("def test_spark(delta_spark): pass")
    result = pytester.runpytest_inprocess(*PLUGIN, "-rs")
    result.assert_outcomes(**outcome)
    result.stdout.re_match_lines(
        [".*The fixture delta_spark cannot start Spark. PySpark finds no Java runtime. Install Java 17.*"]
    )


def test_an_unknown_setting_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ndelta_spark_missing = maybe\n")
    result = pytester.runpytest_inprocess(*PLUGIN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.re_match_lines([".*delta_spark_missing is 'error' or 'skip', found 'maybe'.*"])


def test_a_project_that_uses_no_fixture_imports_neither_tahoe_nor_arrow_nor_spark(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_imports():
            loaded = {name for name in sys.modules if name.partition(".")[0] in ("tahoe", "pyarrow", "pyspark", "obstore", "hypothesis")}
            assert loaded - {"tahoe", "tahoe.base", "tahoe.base.version", "tahoe.testing", "tahoe.testing.pytest_plugin"} == set()
        """
    )
    pytester.runpytest_subprocess("-p", "no:hypothesispytest", *PLUGIN).assert_outcomes(passed=1)


def test_it_is_loaded_by_its_entry_point_and_allows_rewriting_in_a_conftest(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (entry,) = project["entry-points"]["pytest11"].items()
    installed = pytester.mkdir("installed")
    (installed / "a_project-1.dist-info").mkdir()
    (installed / "a_project-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: a-project\nVersion: 1\n")
    (installed / "a_project-1.dist-info" / "RECORD").write_text("tahoe/__init__.py,,\ntahoe_startup.py,,\n")
    (installed / "a_project-1.dist-info" / "entry_points.txt").write_text("[pytest11]\n{} = {}\n".format(*entry))
    monkeypatch.setenv("PYTHONPATH", f"{installed}{os.pathsep}{ROOT}")
    pytester.makeconftest("import pytest\n\npytest.register_assert_rewrite('tahoe.testing')\n")
    pytester.makepyfile(
        """
        from tahoe.testing import table_laws

        def test_plugin(delta_table, pytestconfig):
            assert pytestconfig.pluginmanager.has_plugin("tahoe.testing.pytest_plugin")
            assert type(table_laws.__loader__).__name__ == "AssertionRewritingHook"
        """
    )
    for more in ((), ("-p", "tahoe.testing.pytest_plugin")):
        pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "error", *more).assert_outcomes(passed=1)
