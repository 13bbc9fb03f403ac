"""`tahoe sql`, `diff`, `stats`, `du`, `watch`, `report`, `uniform enable` and `completion`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from tahoe.api.table import Table
from tahoe.cli.main import app
from tahoe.cli.reports.sql import columns_of
from tahoe.exceptions import InvalidRequest


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table.create(tmp_path / "t", {"id": "long", "name": "string"})
    table.append(pa.table({"id": [1, 2], "name": ["a", "b"]}))
    table.append(pa.table({"id": [3], "name": ["b"]}))
    return table


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def test_sql_queries_several_tables(table: Table, tmp_path: Path) -> None:
    Table.create(tmp_path / "u", {"id": "long", "x": "long"}).append(pa.table({"id": [3], "x": [30]}))
    query = "SELECT name, count(*) AS n, max(x) AS x FROM t LEFT JOIN u USING (id) GROUP BY name ORDER BY name"
    printed = run("sql", tmp_path / "t", query, "--table", f"u={tmp_path / 'u'}", "-o", "json").stdout
    assert json.loads(printed) == [{"name": "a", "n": 1, "x": None}, {"name": "b", "n": 2, "x": 30}]
    assert json.loads(run("sql", tmp_path / "t", "SELECT count(*) AS n FROM t", "-o", "json").stdout) == [{"n": 3}]
    assert json.loads(run("sql", tmp_path / "t", "FROM t WHERE id > 2", "-o", "json").stdout) == [{"id": 3, "name": "b"}]


def test_sql_runs_statements_without_rows(table: Table, tmp_path: Path) -> None:
    run("sql", tmp_path / "t", f"COPY (SELECT name FROM t WHERE id = 3) TO '{tmp_path / 'copy.csv'}'")
    assert (tmp_path / "copy.csv").read_text() == "name\nb\n"


def test_sql_errors_name_the_cause(table: Table, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="DuckDB refuses the query: Parser Error"):
        run("sql", tmp_path / "t", "SELEC 1")
    with pytest.raises(InvalidRequest, match="write it as customers="):
        run("sql", tmp_path / "t", "SELECT 1", "--table", "nothing")


@pytest.mark.parametrize(
    ("query", "needed"),
    [
        ("SELECT A FROM t WHERE b > 1", {"a", "b"}),
        ("SELECT count(*) FROM t", set()),
        ("SELECT x.a.f FROM t AS x", {"a"}),
        ("SELECT a FROM t JOIN t AS u USING (c)", {"a", "c"}),
        ("SELECT * FROM t", None),
        ("FROM t", None),
        ("SELECT t FROM t", None),
        ("SELECT a AS z FROM t ORDER BY z", None),
        ("SELECT a FROM t NATURAL JOIN t AS u", None),
        ("SELECT columns('a') FROM t", None),
        ("PIVOT t ON a USING sum(b)", None),
        ("SELECT a FROM t; SELECT b FROM t", {"a", "b"}),
    ],
)
def test_sql_reads_only_the_columns_of_the_query(query: str, needed: set[str] | None) -> None:
    assert columns_of(duckdb.connect(), query, {"a", "b", "c"}) == needed


def test_diff_stats_and_du(table: Table, tmp_path: Path) -> None:
    assert "1 inserted, 0 updated, 0 deleted" in run("diff", tmp_path / "t", 1, "--key", "id").stdout
    assert json.loads(run("diff", tmp_path / "t", 0, 1, "--rows", "--json").stdout)["rows"] == {
        "inserted": 2,
        "updated": 0,
        "deleted": 0,
    }
    assert "3 rows in 2 files" in run("stats", tmp_path / "t").stdout
    assert [column["least"] for column in json.loads(run("stats", tmp_path / "t", "--json").stdout)["columns"]] == [1, "a"]
    assert "live data" in run("du", tmp_path / "t").stdout
    assert json.loads(run("du", tmp_path / "t", "--json").stdout)["kinds"][0]["files"] == 2


def test_report_writes_a_page_or_prints_json(table: Table, tmp_path: Path) -> None:
    printed = run("report", tmp_path / "t", "--html", tmp_path / "r.html").stdout
    assert "3 rows, no problem found" in printed
    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(run("report", tmp_path / "t", "--json").stdout)["rows"] == 3


def test_watch_prints_old_and_new_commits(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.loads(line) for line in run("watch", tmp_path / "t", "--from", 1, "-n", 2, "--json").stdout.splitlines()]
    assert [line["version"] for line in lines] == [1, 2]

    # Another writer commits while the command waits.
    monkeypatch.setattr("tahoe.cli.versions.SYSTEM_CLOCK.sleep", lambda _: table.append(pa.table({"id": [4], "name": ["d"]})))
    printed = run("watch", tmp_path / "t", "-n", 1).stdout
    assert printed.startswith("3  ")
    with pytest.raises(InvalidRequest, match="greater than 0"):
        run("watch", tmp_path / "t", "--every", 0)


def test_uniform_enable(table: Table, tmp_path: Path) -> None:
    assert "to be rewritten" in run("uniform", "enable", tmp_path / "t", "--dry-run").stdout
    assert table.version() == 2
    run("uniform", "enable", tmp_path / "t")
    status = table.uniform.status()
    assert (status.enabled, status.lag_versions) == (True, 0)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion_prints_the_script_of_a_shell(shell: str) -> None:
    assert "_TAHOE_COMPLETE" in run("completion", shell).stdout


def test_bash_completes_commands(tmp_path: Path) -> None:
    """The script of bash, sourced by bash, offers the commands that begin with the word."""
    (tmp_path / "script").write_text(run("completion", "bash").stdout)
    command = tmp_path / "tahoe"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tahoe "$@"\n')
    command.chmod(0o755)
    program = f"""
        PATH={tmp_path}:$PATH
        source {tmp_path}/script
        COMP_WORDS=(tahoe his); COMP_CWORD=1
        _tahoe_completion tahoe
        echo "${{COMPREPLY[@]}}"
    """
    bash = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert bash.stdout.split() == ["history"], bash.stderr
