"""`tahoe detail|history|files|check`: output for users, output for programs, and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import tahoe
from tahoe.base.exceptions import CorruptTable
from tahoe.cli.main import app, main

SCHEMA = pa.schema({"id": pa.int64(), "month": pa.int32(), "name": pa.string()})


def rows(month: int, count: int = 3) -> pa.Table:
    return pa.table({"id": list(range(count)), "month": [month] * count, "name": ["x"] * count}, schema=SCHEMA)


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "table")
    table = tahoe.Table.create(place, SCHEMA, partition_by=["month"], name="flights", properties={"delta.appendOnly": "false"})
    for month in (1, 2, 3):
        table.append(rows(month), user_metadata=f"month {month}")
    return place


def run(*words: str, code: int = 0) -> str:
    """Return the output of a command, after checking its exit code."""
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "240"})
    assert result.exit_code == code, result.output
    return result.output


def run_json(*words: str, code: int = 0) -> Any:
    return json.loads(run(*words, "--json", code=code))


def run_main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Return the console script's exit code, and its standard error."""
    monkeypatch.setattr(sys, "argv", ["tahoe", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0), capsys.readouterr().err


def test_detail_shows_the_table_on_one_screen(path: str) -> None:
    shown = run("detail", path)
    for expected in ("flights", "version", "3, ", "partitioned by", "month", "delta.appendOnly = false", "long", "string"):
        assert expected in shown
    assert len(shown.splitlines()) < 25


def test_detail_as_json_has_the_columns_of_describe_detail_and_the_schema(path: str) -> None:
    facts = run_json("detail", path)
    assert facts["format"] == "delta"
    assert facts["version"] == 3
    assert facts["numFiles"] == 3
    assert facts["partitionColumns"] == ["month"]
    assert [column["name"] for column in facts["schema"]["fields"]] == ["id", "month", "name"]
    assert facts["lastModified"].endswith("+00:00")


def test_history_is_newest_first_and_limited(path: str) -> None:
    assert [commit["version"] for commit in run_json("history", path)] == [3, 2, 1, 0]
    assert [commit["version"] for commit in run_json("history", path, "--limit", "2")] == [3, 2]
    assert run_json("history", path)[0]["userMetadata"] == "month 3"


def test_history_shows_rows_files_and_age(path: str) -> None:
    for commit in Path(path).glob("_delta_log/*.json"):
        an_hour_ago = commit.stat().st_mtime - 90 * 60
        os.utime(commit, (an_hour_ago, an_hour_ago))
    newest = next(line for line in run("history", path).splitlines() if line.strip().startswith("3"))
    for expected in ("1 hour ago", "WRITE", "mode Append", "+1", "month 3", "Tahoe/"):
        assert expected in newest


def test_files_lists_only_files_that_a_filter_needs(path: str) -> None:
    assert len(run_json("files", path)) == 3
    (file,) = run_json("files", path, "--filter", "month = 2")
    assert file["partitionValues"] == {"month": "2"}
    assert file["numRecords"] == 3
    assert file["stats"]["maxValues"]["id"] == 2
    assert run_json("files", path, "--filter", "id > 7") == []


def test_files_of_an_old_version_and_a_limited_number(path: str) -> None:
    assert len(run_json("files", path, "--at", "1")) == 1
    shown = run("files", path, "--limit", "1")
    assert "3 files" in shown
    assert "1 shown" in shown


def test_files_shows_logical_names_for_mapped_columns(tmp_path: Path) -> None:
    place = str(tmp_path / "mapped")
    table = tahoe.Table.create(place, SCHEMA, partition_by=["month"], properties={"delta.columnMapping.mode": "name"})
    table.append(rows(5))
    assert "month=5" in run("files", place)


def test_check_finds_nothing_on_a_sound_table(path: str) -> None:
    assert "no problems found" in run("check", path)
    assert run_json("check", path) == []


@pytest.mark.damages_tables
def test_check_strict_names_the_rule_and_its_section(path: str) -> None:
    assert "no problems found" in run("check", path, "--strict")
    (Path(path) / "_delta_log" / "7.json").write_text("{}\n")
    assert run_json("check", path) == []
    assert "(PROTOCOL.md, Delta Log Entries)" in " ".join(run("check", path, "--strict", code=1).split())
    (finding,) = run_json("check", path, "--strict", code=1)
    assert (finding["code"], finding["section"]) == ("names-have-twenty-digits", "Delta Log Entries")


@pytest.mark.damages_tables
def test_check_names_a_missing_file_and_exits_with_1(path: str) -> None:
    victim = next(Path(path).rglob("month=2/*.parquet"))
    victim.unlink()
    assert victim.name in run("check", path, code=1)
    (finding,) = run_json("check", path, code=1)
    assert finding["code"] == "file"
    assert finding["file"].endswith(victim.name)


@pytest.mark.parametrize("command", ["detail", "history", "files", "check"])
def test_a_missing_table_is_one_sentence_and_exit_code_2(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = run_main(monkeypatch, capsys, command, str(tmp_path / "nothing"))
    assert code == 2
    assert "DELTA_TABLE_NOT_FOUND" in error
    assert "nothing" in error
    assert len(error.splitlines()) == 1


def test_an_invalid_filter_is_one_sentence(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = run_main(monkeypatch, capsys, "files", path, "--filter", "no_such_column = 1")
    assert code == 2
    assert "no_such_column" in error
    assert "Traceback" not in error


def test_a_storage_option_without_a_value_is_refused(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = run_main(monkeypatch, capsys, "detail", path, "--option", "region")
    assert code == 2
    assert "'region'" in error


def test_an_internal_error_is_one_sentence_too(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TAHOE_TRACEBACK", raising=False)

    def broken(self: object) -> None:
        raise RuntimeError("open s3://user:hunter2@bucket with sesame")

    monkeypatch.setattr("tahoe.api.table.Table.detail", broken)
    code, error = run_main(monkeypatch, capsys, "detail", path, "--option", "secret_access_key=sesame")
    assert code == 2
    assert error.startswith("tahoe: unexpected RuntimeError")
    assert "sesame" not in error
    assert "hunter2" not in error
    assert "Traceback" not in error


def test_properties_that_look_like_secrets_are_hidden(tmp_path: Path) -> None:
    place = str(tmp_path / "table")
    tahoe.Table.create(place, SCHEMA, properties={"loader.password": "hunter2", "loader.name": "nightly"})
    for shown in (run("detail", place), run("detail", place, "--json")):
        assert "hunter2" not in shown
        assert "nightly" in shown


def test_names_in_a_table_cannot_control_the_terminal_or_the_markup(tmp_path: Path) -> None:
    place = str(tmp_path / "table")
    tahoe.Table.create(place, SCHEMA, description="\x1b[2Jcleared [red]and red[/red]")
    shown = run("detail", place)
    assert "\x1b[2J" not in shown
    assert "\\x1b[2Jcleared [red]and red[/red]" in shown


def test_output_into_a_pipe_has_no_colour_and_is_not_cut(path: str) -> None:
    shown = subprocess.run([sys.executable, "-m", "tahoe", "files", path], capture_output=True, text=True, check=True).stdout
    assert "\x1b" not in shown
    for name in Path(path).rglob("*.parquet"):
        assert name.name in shown.replace("\n", "")


def test_a_closed_pipe_is_not_an_error(path: str) -> None:
    command = f"'{sys.executable}' -m tahoe files '{path}' --json | true; echo ${{PIPESTATUS[0]}}"
    outcome = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert outcome.stderr == ""
    assert outcome.stdout.strip() == "0"


def test_no_command_loads_an_engine(path: str) -> None:
    """Startup stays under half a second: a command imports nothing heavy that it does not need."""
    heavy = ("pyspark", "py4j", "pyiceberg", "pandas", "sqlglot", "sqlalchemy", "deltalake", "duckdb", "polars")
    program = f"""
import sys
from tahoe.cli.main import main
for command in ("detail", "history", "files", "check"):
    sys.argv = ["tahoe", command, {path!r}, "--json"]
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
    print(command, [name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stderr.splitlines() == ["detail []", "history []", "files []", "check []"]


def test_help_needs_neither_arrow_nor_rich() -> None:
    heavy = ("pyarrow", "obstore", "rich", "importlib.metadata")
    program = f"import sys, tahoe.cli.main; print([name for name in {heavy!r} if name in sys.modules])"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"


def test_the_version_is_printed() -> None:
    assert run("--version").strip() == f"tahoe {tahoe.__version__}"


@pytest.mark.damages_tables
def test_check_deep_reads_the_rows_and_json_gives_codes(tmp_path: Path) -> None:
    place = str(tmp_path / "table")
    for value in (1, 2):
        tahoe.Table(place).append(pa.table({"id": pa.array([value] * 10)}))
    first, second = sorted(Path(place).glob("*.parquet"))
    first_bytes, second_bytes = first.read_bytes(), second.read_bytes()
    first.write_bytes(second_bytes)
    second.write_bytes(first_bytes)
    assert [finding["code"] for finding in run_json("check", place, code=1)] == ["data", "data"]
    violations = run_json("check", place, "--deep", code=1)
    assert {finding["file"] for finding in violations} == {first.name, second.name}
    assert set(violations[0]) == {"code", "message", "version", "file", "error"}
    assert violations[0]["code"] == "statistics"


def test_optimize_has_a_dry_run(path: str) -> None:
    for count in (4, 5):
        tahoe.Table(path).append(rows(2, count))
    planned = run_json("optimize", path, "--dry-run", "--where", "month = 2")
    assert planned["planned"]["files"] == 3
    assert (planned["dryRun"], planned["version"], planned["metrics"]["numFilesRemoved"]) == (True, None, 0)
    assert "would rewrite 3 of 5 files" in run("optimize", path, "--dry-run").replace("\n", " ")
    done = run_json("optimize", path, "-w", "month = 2")
    assert (done["version"], done["metrics"]["numFilesAdded"], done["metrics"]["partitionsOptimized"]) == (6, 1, 1)
    assert "nothing to optimize" in run("optimize", path)
    assert run_json("history", path, "-n", "1")[0]["operation"] == "OPTIMIZE"


def test_optimize_clusters_by_columns(path: str) -> None:
    done = run("optimize", path, "-z", "id", "--zorder-by", "name", "--curve", "hilbert", "--target-size", "1kb")
    assert "3 files of" in done
    assert run_json("history", path, "-n", "1")[0]["operationParameters"]["zOrderBy"] == '["id","name"]'


def test_layout_shows_how_well_columns_are_clustered(path: str, tmp_path: Path) -> None:
    page = tmp_path / "layout.html"
    shown = run("layout", path, "--by", "id", "--target-size", "1kb", "--html", str(page))
    assert "id *" in shown and "cluster them by id: 3 files in all" in shown.replace("\n", " ")
    assert page.read_text().startswith("<!doctype html>")
    result = run_json("layout", path, "-a", "name")
    assert [column["name"] for column in result["columns"]][:2] == ["id", "name"]
    assert result["files"] == 3


def test_vacuum_has_a_dry_run(path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(30):
        (Path(path) / f"orphan-{number}").write_bytes(b"?")
    code, message = run_main(monkeypatch, capsys, "vacuum", path, "--retain-hours", "0")
    assert (code, "at least 168 hours" in message) == (2, True)
    shown = run("vacuum", path, "--retain-hours", "0", "--no-retention-check", "--dry-run")
    assert "… and 10 more" in shown and "would delete 30 files of 30 bytes" in shown.replace("\n", " ")
    options = ("--retain-hours", "0", "--no-retention-check")
    planned = run_json("vacuum", path, *options, "--dry-run")
    assert (len(planned["files"]), planned["bytes"], planned["deleted"], planned["lostVersions"]) == (30, 30, 0, [])
    assert run_json("vacuum", path, *options, "--lite")["deleted"] == 0
    done = run_json("vacuum", path, *options)
    assert (done["deleted"], done["files"]) == (30, planned["files"])
    assert run_json("history", path, "-n", "1")[0]["operation"] == "VACUUM END"


def test_convert_has_a_dry_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "parquet" / "day=2026-03-01"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), folder / "a.parquet")
    path = str(folder.parent)
    assert "would make a table of 1 file" in run("convert", path, "-p", "day:date", "--dry-run")
    summary = run_json("convert", path, "--partition-by", "day:date", "--no-statistics")
    assert summary["version"] == 0 and summary["files"] == 1 and not summary["wasDelta"]
    assert tahoe.Table(path).to_arrow().num_rows == 2
    assert "already" in run("convert", path)
    code, message = run_main(monkeypatch, capsys, "convert", path, "-p", "day")
    assert code == 2 and "day:date" in message


def test_fsck_has_a_dry_run(path: str) -> None:
    assert "are there" in run("fsck", path)
    next(Path(path).glob("month=2/*.parquet")).unlink()
    assert "would remove 1 file" in run("fsck", path, "--dry-run")
    assert [file["is_missing"] for file in run_json("fsck", path)["lost"]] == [True]
    assert tahoe.Table(path).to_arrow().num_rows == 6


def test_analyze_has_a_dry_run(path: str) -> None:
    assert "0 need new statistics" in run("analyze", path, "--dry-run")
    before = tahoe.Table(path).set_properties({"delta.dataSkippingNumIndexedCols": "0"})
    assert "3 need new statistics" in run("analyze", path, "--dry-run")
    assert tahoe.Table(path).version() == before
    summary = run_json("analyze", path, "--where", "month = 2")
    assert (summary["files"], summary["changed"], summary["version"], summary["dryRun"]) == (1, 1, before + 1, False)
    assert "2 were given new statistics" in run("analyze", path)
    assert run_json("analyze", path)["version"] is None, "all are correct now"
    assert tahoe.Table(path).to_arrow().num_rows == 9


@pytest.mark.damages_tables
def test_analyze_repairs_statistics_wider_than_the_files(path: str) -> None:
    commit = Path(path) / "_delta_log" / f"{1:020d}.json"
    actions = [action for line in commit.read_text().splitlines() if "commitInfo" not in (action := json.loads(line))]
    (add,) = [action["add"] for action in actions if "add" in action]
    add["stats"] = json.dumps({**json.loads(add["stats"]), "minValues": {"id": 0}, "maxValues": {"id": 1_000_000}})
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in commit.parent.glob("*.crc"):
        checksum.unlink()
    with pytest.raises(CorruptTable, match="`tahoe analyze` computes them again") as caught:
        tahoe.Table(path).to_arrow()
    assert caught.value.code == "TAHOE_DATA_FILE_CONTRADICTS_LOG"
    run("analyze", path)
    assert tahoe.Table(path).to_arrow().num_rows == 9


def test_clone_and_generate_have_a_dry_run(path: str, tmp_path: Path) -> None:
    target = str(tmp_path / "clone")
    assert "would make" in run("clone", path, target, "--shallow", "--dry-run")
    summary = run_json("clone", path, target, "--shallow", "--version", "2")
    assert summary["version"] == 0 and summary["sourceVersion"] == 2
    assert tahoe.Table(target).to_arrow().num_rows == 6
    assert "deep clone" in run("clone", path, target, "--replace")
    assert "would list" in run("generate", path, "--dry-run")
    assert len(run_json("generate", path)["written"]) == 3


def test_restore_has_a_dry_run(path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    before = tahoe.Table(path).to_arrow()
    version = tahoe.Table(path).version()
    tahoe.Table(path).append(rows(2, 4))
    planned = run_json("restore", path, "--version", str(version), "--dry-run")
    assert (planned["version"], planned["target"], planned["metrics"]["num_removed_files"]) == (None, version, 1)
    assert f"to version {version} would restore 0 files" in run("restore", path, "-v", str(version), "--dry-run")
    assert f"is equal to version {version}" in run("restore", path, "-v", str(version)).replace("\n", " ")
    assert tahoe.Table(path).to_arrow().num_rows == before.num_rows
    code, message = run_main(monkeypatch, capsys, "restore", path)
    assert (code, "one of the two" in message) == (2, True)
    assert run_main(monkeypatch, capsys, "restore", path, "--timestamp", "1999-01-01")[0] == 2


def test_drop_feature_has_a_dry_run(path: str) -> None:
    tahoe.Table(path).add_feature("vacuumProtocolCheck")
    before = tahoe.Table(path).version()
    planned = run_json("drop-feature", path, "vacuumProtocolCheck", "--dry-run")
    assert planned["dryRun"] and planned["version"] is None and tahoe.Table(path).version() == before
    assert planned["protocol"]["writerFeatures"] == ["appendOnly", "checkpointProtection", "invariants"]
    assert "would rewrite 0 files" in run("drop-feature", path, "vacuumProtocolCheck", "--truncate-history", "--dry-run")
    assert "has no vacuumProtocolCheck any more" in run("drop-feature", path, "vacuumProtocolCheck").replace("\n", " ")


def test_compat_names_engines_and_their_obstacles(path: str) -> None:
    tahoe.Table(path).add_feature("typeWidening")
    engines = {(engine["engine"], engine["versions"]): engine for engine in run_json("compat", path)}
    assert engines["delta-spark", "4.0.1"]["reads"] == "yes" and engines["Polars (scan_delta)", "2.1"]["why"].startswith(
        "typeWidening"
    )
    assert engines["Snowflake (Delta files in object storage)", "since March 2026"]["reads"] == "unknown"
    assert "delta-spark" in run("compat", path)


def test_repair_log_has_a_dry_run(path: str) -> None:
    version = tahoe.Table(path).version()
    checksum = Path(path) / "_delta_log" / f"{version:020d}.crc"
    checksum.unlink()
    planned = run_json("repair-log", path, "--dry-run")
    assert (planned["version"], planned["dry_run"], len(planned["findings"])) == (version, True, 1)
    assert not checksum.exists()
    assert "were rewritten" in run("repair-log", path).replace("\n", " ")
    assert checksum.exists() and run_json("repair-log", path, "--dry-run")["findings"] == []


def test_an_invalid_size_is_refused(path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, message = run_main(monkeypatch, capsys, "optimize", path, "--target-size", "large")
    assert (code, "--target-size takes a size such as" in message) == (2, True)
