"""Common mistakes at the command line: few lines on standard error, exit code 2, a remedy in the command line's own terms, no traceback."""

from __future__ import annotations

import io
import json
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tahoe
from tahoe.cli.main import main
from tahoe.log.files.paths import commit_name
from tahoe.store import role_credentials

pytestmark = pytest.mark.damages_tables("reading damaged tables is a mistake too")

MOST_ROWS = 12
ROW = 100
"""The rows of a terminal of this width that an error may take; longer lines are wrapped."""
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])

MISTAKES = [
    # command line, texts of the error: its class or the parser's words, the place, and the remedy
    ("detail nowhere", "[DELTA_TABLE_NOT_FOUND]", "/nowhere is not a Delta table", "Check the path"),
    ("detail parquet", "[DELTA_TABLE_NOT_FOUND]", "/parquet is not a Delta table", "convert them with tahoe convert."),
    ("detail parquet/a.parquet", "[DELTA_TABLE_NOT_FOUND]", "The path is a file: pass the folder"),
    ("detail empty", "[DELTA_TABLE_NOT_FOUND]", "/empty is not a Delta table", "Check the path"),
    ("detial orders", "No such command 'detial'", "Did you mean 'detail'?"),
    ("uniform stats orders", "No such command 'stats'", "Did you mean 'status'?"),
    ("detail", "Missing argument 'path'", "tahoe detail -h"),
    ("detail orders --jsn", "No such option: --jsn", "--json"),
    ("detail orders more", "unexpected extra argument", "(more)"),
    ("detail ftp://host/x", "[TAHOE_TABLE_LOCATION]", "'ftp'", "use a local folder"),
    ("detail s3:///x", "[TAHOE_TABLE_LOCATION]", "bucket"),
    ("detail orders --option region", "[TAHOE_STORAGE_OPTION]", "'region'", "--option name=value"),
    ("detail s3://bucket/x --option bogus=1", "[TAHOE_STORAGE_OPTION]", "'bogus'", "correct its name"),
    ("detail az://container/x", "[TAHOE_STORAGE_OPTION]", "no storage account", "AZURE_STORAGE_ACCOUNT_NAME"),
    ("history orders --limit -1", "Invalid value for '--limit'", "greater than or equal to 1"),
    ("history orders --limit many", "Invalid value for '--limit'", "a valid integer"),
    ("history orders --limt 3", "No such option: --limt", "--limit"),
    ("head orders --at 99", "[DELTA_VERSION_NOT_FOUND]", "/orders has no version 99", "0 to 1"),
    ("head orders --at x", "Invalid value for '--at'", "a valid integer"),
    ("head orders --columns nam", "[DELTA_COLUMN_NOT_FOUND]", "'nam'", "Did you mean 'name'?"),
    ('head orders --filter "nam = 1"', "[DELTA_COLUMN_NOT_FOUND]", "nam", "Did you mean 'name'?"),
    ('head orders --filter "id ="', "[PARSE_SYNTAX_ERROR]", "'id ='", "expected a column"),
    ("head orders --filter \"id = 'x'\"", "[CAST_INVALID_INPUT]", "'x'", "correct the literal"),
    ('files orders --filter "SELECT 1"', "[TAHOE_EXPRESSION_NOT_ALLOWED]", "SELECT"),
    ("head orders --output xml", "Invalid value for '--output'", "'table', 'json', 'csv', 'arrow'"),
    ("changes orders --from 0", "[DELTA_MISSING_CHANGE_DATA]", "/orders was not on", "delta.enableChangeDataFeed"),
    ('sql orders "SELECT nam FROM t"', "[TAHOE_SQL_QUERY]", '"nam"', '"name"'),
    ("diff orders 0 99", "[DELTA_VERSION_NOT_FOUND]", "/orders has no version 99", "0 to 1"),
    ("diff orders 0 1 --key nam", "[TAHOE_DIFF_KEY]", "'nam'", "these are: id, name, day"),
    ("append orders other.csv", "[DELTA_METADATA_MISMATCH]", "'nme'", "Pass --merge-schema"),
    ("append orders wrong.csv", "[TAHOE_FILE_FORMAT]", "'x'", "--format"),
    ("append orders rows.txt", "[TAHOE_FILE_FORMAT]", "'rows.txt'", "--format parquet|csv|json|arrow"),
    ("append orders missing.csv", "[TAHOE_NO_FILE]", "'missing.csv'", "Check the path"),
    ("append orders broken.json", "[TAHOE_FILE_FORMAT]", "JSON parse error", "--format"),
    (
        "vacuum orders --retain-hours 1",
        "[DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT]",
        "/orders: ",
        "disable the check: --no-retention-check",
    ),
    ("vacuum orders --retention-hours 1", "No such option: --retention-hours", "--retain-hours"),
    ("vacuum orders --retain-hours week", "Invalid value for '--retain-hours'", "a valid number"),
    ("restore orders", "[DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS]", "Pass --version or --timestamp"),
    ("restore orders --version 99", "[DELTA_CANNOT_RESTORE_TABLE_VERSION]", "/orders to version 99", "up to 1"),
    ("restore orders --timestamp yesterday", "[DELTA_TIMESTAMP_INVALID]", "'yesterday'", "Write it as"),
    ("optimize orders --zorder nam", "No such option: --zorder", "--zorder-by"),
    ("optimize orders --zorder-by nam", "[DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST]", "/orders; it has id, name, day"),
    ("optimize orders --where \"name = 'a'\"", "[DELTA_NON_PARTITION_COLUMN_REFERENCE]", "'name'", "Leave the column out"),
    ("set orders delta.appendOnly=yes", "[TAHOE_TABLE_PROPERTY]", "delta.appendOnly needs to be a boolean", "'yes'"),
    ("set orders delta.enableChangeDataFed=true", "[DELTA_UNKNOWN_CONFIGURATION]", "Did you mean 'delta.enableChangeDataFeed'?"),
    ("set orders delta.appendOnly", "[TAHOE_ARGUMENT_PAIR]", "write it as delta.appendOnly=true"),
    ("set orders", "[TAHOE_NO_PROPERTIES]", "--unset NAME"),
    ("create orders id:long", "[DELTA_TABLE_ALREADY_EXISTS]", "/orders already", "choose another place"),
    ('create new "id int64"', "[TAHOE_ARGUMENT_PAIR]", "'id int64'", "write it as id:long"),
    ("create new id:int64", "[DELTA_UNSUPPORTED_DATA_TYPES]", "'int64'", "Did you mean 'long'?"),
    ("create new id:long --partition-by day", "[DELTA_PARTITION_COLUMN_NOT_FOUND]", "'day'", "the columns are: id"),
    (
        "drop-feature orders deletionVector",
        "[DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE]",
        "/orders",
        "Did you mean 'deletionVectors'?",
    ),
    ("clone orders orders", "[DELTA_TABLE_ALREADY_EXISTS]", "/orders already", "Replace it with --replace"),
    ("convert empty", "[DELTA_EMPTY_DIRECTORY]", "/empty", "Name the folder of the Parquet files"),
    ("uniform sync orders", "[DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED]", "/orders", "tahoe uniform enable TABLE"),
    ("fsck orders --dryrun", "No such option: --dryrun", "--dry-run"),
    ("report orders --out x.html", "No such option: --out", "tahoe report -h"),
    ("run nothing.py", "[TAHOE_RUN_NO_COMMAND]", "'nothing.py'", "tahoe run python nothing.py"),
    ("completion tcsh", "Invalid value for 'shell'", "'bash', 'zsh', 'fish'"),
    ("head lost", "[DELTA_FILE_NOT_FOUND]", "/lost, version 1: Data file 'part-", "run tahoe fsck TABLE"),
    ("head broken_log", "[DELTA_TXN_LOG_FAILED_INTEGRITY]", "/broken_log: ", "00000000000000000001.json", "Restore the file"),
    ("head newer", "[DELTA_UNSUPPORTED_FEATURES_FOR_READ]", "/newer needs reader features", "Upgrade Tahoe"),
    ("head gap", "[DELTA_VERSIONS_NOT_CONTIGUOUS]", "/gap: ", "00000000000000000001.json", "Restore it from a backup"),
    ("create rows.txt/new id:long", "[TAHOE_STORAGE_FAILURE]", "/rows.txt/new", "A part of the path is a file"),
    (
        "report orders --html nowhere/x.html",
        "[TAHOE_NO_FILE]",
        "'nowhere/x.html'",
        "Pass --html with a file in a folder that exists",
    ),
    ("layout orders --html nowhere/x.html", "[TAHOE_NO_FILE]", "'nowhere/x.html'", "No such file or directory"),
]


def _table(path: Path, commits: int = 1) -> tahoe.Table:
    table = tahoe.Table.create(path, SCHEMA)
    for _ in range(commits):
        table.append(pa.table({"id": [1, 2], "name": ["a", "b"], "day": pa.array([None, None], pa.date32())}))
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The current folder of the commands: their errors change nothing in it."""
    root = tmp_path_factory.mktemp("mistakes")
    for name in ("orders", "lost", "broken_log", "newer"):
        _table(root / name)
    _table(root / "gap", commits=2)
    for name in ("parquet", "empty"):
        (root / name).mkdir()
    pq.write_table(pa.table({"id": [1]}), root / "parquet" / "a.parquet")
    for file in (root / "lost").glob("*.parquet"):
        file.unlink()
    (root / "broken_log" / commit_name(1)).write_text("{nope")
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["newer"], "writerFeatures": ["newer"]}
    (root / "newer" / commit_name(2)).write_text(json.dumps({"protocol": protocol}))
    (root / "gap" / commit_name(1)).unlink()
    (root / "other.csv").write_text("id,nme\n1,a\n")
    (root / "wrong.csv").write_text("id,name\nx,a\n")
    (root / "rows.txt").write_text("hello")
    (root / "broken.json").write_text("{nope")
    return root


def run(line: str, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Run a command line in this process; return its exit code, output and errors."""
    monkeypatch.setattr(sys, "argv", ["tahoe", *shlex.split(line)])
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stopped:
        main()
    return SimpleNamespace(code=stopped.value.code, out=out.getvalue(), err=err.getvalue())


def rows_of(text: str) -> int:
    """Return the rows of a terminal that a text takes."""
    return sum(max(1, -(-len(line) // ROW)) for line in text.rstrip().splitlines())


@pytest.fixture(autouse=True)
def _as_users_have_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAHOE_TRACEBACK", raising=False)
    monkeypatch.setenv("COLUMNS", str(ROW))
    monkeypatch.chdir(folder)


@pytest.mark.every_case
@pytest.mark.parametrize("mistake", MISTAKES, ids=[line for line, *_ in MISTAKES])
def test_a_mistake_is_answered_in_a_few_lines(mistake: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    line, *texts = mistake
    done = run(line, monkeypatch)
    assert done.code == 2, done
    assert not done.out
    assert rows_of(done.err) <= MOST_ROWS, done.err
    said = " ".join(done.err.split())
    for text in texts:
        assert text in said, done.err
    for unwanted in ("Traceback", "=True", "=False", "storage_options", "Table.", "object at 0x", "spark."):
        assert unwanted not in said, done.err


def test_a_missing_package_is_answered_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = run('sql orders "SELECT 1"', monkeypatch)
    assert done.code == 2
    assert "[TAHOE_LIBRARY_MISSING]" in done.err
    assert "pip install" in done.err
    assert rows_of(done.err) <= MOST_ROWS


@pytest.fixture
def silent_service() -> Iterator[str]:
    """The URL of a metadata service that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        ("s3://bucket/table", ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "--option aws_access_key_id")),
        ("gs://bucket/table", ("GOOGLE_APPLICATION_CREDENTIALS", "--option google_service_account")),
        (
            "abfss://files@account.dfs.core.windows.net/table",
            ("AZURE_STORAGE_ACCOUNT_KEY", "--option azure_storage_account_name"),
        ),
    ],
)
def test_missing_credentials_are_reported_with_the_settings_and_without_a_retry(
    url: str, settings: tuple[str, ...], silent_service: str, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setattr(role_credentials, "TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(role_credentials, "_service", lambda *_: ("127.0.0.1", urlsplit(silent_service).port))
    monkeypatch.setattr(obstore, "get", lambda *_, **__: pytest.fail("a request was sent"))
    done = run(f"detail {url}", monkeypatch)
    assert done.code == 2
    assert rows_of(done.err) <= MOST_ROWS
    for text in ("[TAHOE_ACCESS_DENIED]", url.rpartition("@")[2], "No credentials found", *settings):
        assert text in done.err


def test_secrets_of_the_command_line_are_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("detail s3://bucket/x --option aws_secret_access_key=open-sesame --option bogus=1", monkeypatch)
    assert done.code == 2
    assert "'bogus'" in done.err
    assert "sesame" not in done.err


def test_there_are_enough_mistakes() -> None:
    assert len(MISTAKES) >= 60
    assert len({line for line, *_ in MISTAKES}) == len(MISTAKES)
