"""Common mistakes: each is refused with an error that names the problem and the remedy, in a few lines of a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tahoe
from tahoe.api.table import Table
from tahoe.log.files.paths import commit_name

pytestmark = pytest.mark.damages_tables("each test has damaged tables, for reading them is a mistake too")

MOST_LINES = 12
"""The lines of a traceback with its message."""
LONGEST_MESSAGE = 12 * 100
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])

MISTAKES = [
    ('Table("/nowhere/at/all").to_arrow()', "DELTA_TABLE_NOT_FOUND"),
    ('Table("~/nowhere").to_arrow()', "DELTA_TABLE_NOT_FOUND"),
    ('Table("").to_arrow()', "TAHOE_TABLE_LOCATION"),
    ("Table(parquet_dir).to_arrow()", "DELTA_TABLE_NOT_FOUND"),
    ('Table(parquet_dir+"/a.parquet").to_arrow()', "DELTA_TABLE_NOT_FOUND"),
    ('Table("s3a://bucket/x", storage_options={"bogus_option":"1"}).to_arrow()', "TAHOE_STORAGE_OPTION"),
    ('Table("ftp://host/x").to_arrow()', "TAHOE_TABLE_LOCATION"),
    ("t.to_arrow(filter=\"nam = 'a'\")", "DELTA_COLUMN_NOT_FOUND"),
    ('t.to_arrow(filter="name = a")', "DELTA_COLUMN_NOT_FOUND"),
    ("t.to_arrow(filter=\"name == 'a' &&& id\")", "PARSE_SYNTAX_ERROR"),
    ("t.to_arrow(filter=\"id = 'x'\")", "CAST_INVALID_INPUT"),
    ('t.to_arrow(filter="name LIKE")', "PARSE_SYNTAX_ERROR"),
    ('t.to_arrow(filter="SELECT 1")', "TAHOE_EXPRESSION_NOT_ALLOWED"),
    ("t.to_arrow(filter=5)", "TAHOE_WRONG_ARGUMENT"),
    ('t.to_arrow(columns=["nam"])', "DELTA_COLUMN_NOT_FOUND"),
    ('t.to_arrow(colums=["name"])', "TypeError"),
    ("t.to_arrow(version=99)", "DELTA_VERSION_NOT_FOUND"),
    ("t.to_arrow(version=-1)", "DELTA_VERSION_NOT_FOUND"),
    ('t.to_arrow(version="1")', "TAHOE_WRONG_ARGUMENT"),
    ('t.to_arrow(timestamp="2001-01-01")', "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
    ('t.to_arrow(timestamp="yesterday")', "DELTA_TIMESTAMP_INVALID"),
    ('t.to_arrow(timestamp="2099-01-01")', "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
    ('t.to_arrow(version=1, timestamp="2026-01-01")', "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"),
    ('t.append({"id":[1]})', "TAHOE_WRONG_ARGUMENT"),
    ("t.append([1,2])", "TAHOE_WRONG_ARGUMENT"),
    ('t.append(pa.table({"id":[1],"nme":["a"]}))', "DELTA_METADATA_MISMATCH"),
    ('t.append(pa.table({"id":["x"],"name":["a"]}))', "DELTA_FAILED_TO_MERGE_FIELDS"),
    ('t.append(pa.table({"ID":[1],"id":[2]}))', "DELTA_DUPLICATE_COLUMNS_FOUND"),
    ('t.append(pa.table({"id":[1]}), mode="overwrite")', "TypeError"),
    ('t.append("file.csv")', "TAHOE_WRONG_ARGUMENT"),
    ('t.overwrite(pa.table({"id":[1]}), where="id = 5")', "TypeError"),
    ('t.overwrite(pa.table({"id":[1]}), replace_where="idd = 1")', "DELTA_COLUMN_NOT_FOUND"),
    (
        't.overwrite(pa.table({"id":[1],"name":["a"],"day":pa.array([None],pa.date32())}), replace_where="id = 5")',
        "DELTA_REPLACE_WHERE_MISMATCH",
    ),
    ("t.delete(\"nam = 'a'\")", "DELTA_COLUMN_NOT_FOUND"),
    ('t.delete("id =")', "PARSE_SYNTAX_ERROR"),
    ('t.delete("id = 1; DROP TABLE x")', "PARSE_SYNTAX_ERROR"),
    ('t.update({"name":"hello"})', "DELTA_COLUMN_NOT_FOUND"),
    ('t.update({"name":"hello world"})', "DELTA_COLUMN_NOT_FOUND"),
    ('t.update({"nme":"\'x\'"})', "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ('t.update({"id":"\'abc\'"}, "id = 1")', "CAST_INVALID_INPUT"),
    ('t.update({}, "id = 1")', "TAHOE_NOTHING_ASSIGNED"),
    ("t.update(\"name = 'x'\")", "TAHOE_WRONG_ARGUMENT"),
    ('t.merge(pa.table({"id":[1]}), "target.id = source.id").execute()', "DELTA_MERGE_MISSING_WHEN"),
    ('t.merge(pa.table({"id":[1]}), "target.id = source.idd").when_matched_delete().execute()', "DELTA_COLUMN_NOT_FOUND"),
    ('t.merge(pa.table({"id":[1]}), "id = id").when_matched_delete().execute()', "AMBIGUOUS_REFERENCE"),
    (
        't.merge(pa.table({"id":[1,1]}), "target.id = source.id").when_matched_update({"name":"\'x\'"}).execute()',
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    ),
    (
        't.merge(pa.table({"id":[1]}), "target.id = source.id").when_matched_update({"name":"source.name"}).execute()',
        "DELTA_COLUMN_NOT_FOUND",
    ),
    (
        't.merge(pa.table({"id":[1]}), "target.id = source.id").when_matched_update({"nme":"\'x\'"}).execute()',
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    ),
    (
        't.merge(pa.table({"id":[9]}), "target.id = source.id").when_not_matched_insert({"id":"source.id","nme":"\'x\'"}).execute()',
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    ),
    ('t.merge([1], "target.id = source.id")', "TAHOE_WRONG_ARGUMENT"),
    ("t.changes(0)", "DELTA_MISSING_CHANGE_DATA"),
    ("t.changes(99)", "DELTA_CDC_START_VERSION_AFTER_LATEST"),
    ("t.changes(2, 1)", "DELTA_CDC_START_VERSION_AFTER_LATEST"),
    ('t.set_properties({"delta.appendOnly":"yes"})', "TAHOE_TABLE_PROPERTY"),
    ('t.set_properties({"delta.logRetentionDuration":"30 days ago"})', "DELTA_INVALID_INTERVAL"),
    ('t.set_properties({"delta.checkpointInterval":"0"})', "TAHOE_TABLE_PROPERTY"),
    ('t.set_properties({"delta.enableChangeDataFed":"true"})', "DELTA_UNKNOWN_CONFIGURATION"),
    ('t.set_properties({"delta.minReaderVersion":"9"})', "TAHOE_TABLE_PROPERTY"),
    ('t.set_properties({"delta.columnMapping.mode":"names"})', "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
    ('t.set_properties({"delta.universalFormat.enabledFormats":"iceberg"})', "DELTA_UNIVERSAL_FORMAT_VIOLATION"),
    ('t.set_properties({"delta.universalFormat.enabledFormats":"hudi"})', "DELTA_UNIVERSAL_FORMAT_VIOLATION"),
    ('t.set_properties("delta.appendOnly")', "TAHOE_WRONG_ARGUMENT"),
    ('t.set_properties({"delta.feature.deletionVector":"supported"})', "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
    ('t.unset_properties(["nothing.here"])', "DELTA_UNSET_NON_EXISTENT_PROPERTY"),
    ('t.add_columns({"id":"long"})', "FIELD_ALREADY_EXISTS"),
    ('t.add_columns({"x":"int64"})', "DELTA_UNSUPPORTED_DATA_TYPES"),
    ('t.add_columns({"x y":"string"})', "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
    ('t.add_columns({"x":"map<string,long>"})', "DELTA_UNSUPPORTED_DATA_TYPES"),
    ('t.drop_columns(["name"])', "DELTA_UNSUPPORTED_DROP_COLUMN"),
    ('t.drop_columns(["nam"])', "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ('t.drop_columns("name")', "DELTA_UNSUPPORTED_DROP_COLUMN"),
    ('t.rename_column("name","id")', "FIELD_ALREADY_EXISTS"),
    ('t.rename_column("name","title")', "DELTA_UNSUPPORTED_RENAME_COLUMN"),
    ('t.change_column("id", data_type="string")', "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
    ('t.change_column("id", data_type="int")', "NOT_SUPPORTED_CHANGE_COLUMN"),
    ('t.add_constraint("c","id > 5")', "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"),
    ('t.add_constraint("c","idd > 5")', "DELTA_INVALID_CHECK_CONSTRAINT_REFERENCES"),
    ('t.add_constraint("c","id +")', "PARSE_SYNTAX_ERROR"),
    ('t.drop_constraint("c")', "DELTA_CONSTRAINT_DOES_NOT_EXIST"),
    ("t.optimize(where=\"name = 'a'\")", "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
    ('t.optimize(zorder_by=["nam"])', "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
    ('t.optimize(target_file_size="1gb")', "TAHOE_WRONG_ARGUMENT"),
    ("t.optimize(target_file_size=-1)", "DELTA_ILLEGAL_OPTION"),
    ("t.vacuum(retain_hours=1)", "TypeError"),
    ("t.vacuum(retention_hours=1)", "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
    ("t.vacuum(retain_hours=-1)", "TypeError"),
    ('t.vacuum(retain_hours="week")', "TypeError"),
    ("t.restore(99)", "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
    ("t.restore()", "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"),
    ('t.restore("1")', "TAHOE_WRONG_ARGUMENT"),
    ('t.restore(version=1, timestamp="2026-01-01")', "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"),
    ("t.clone(t.url)", "DELTA_TABLE_ALREADY_EXISTS"),
    ('t.clone("")', "TAHOE_TABLE_LOCATION"),
    ('t.clone(root+"/c", shallow="yes")', "TAHOE_WRONG_ARGUMENT"),
    ('t.cluster_by(["nam"])', "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    ('t.drop_feature("deletionVector")', "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
    ('t.drop_feature("invariants")', "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
    ('t.add_feature("deletionVectors2")', "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
    ('t.layout(["nam"])', "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
    ("t.diff(99)", "DELTA_VERSION_NOT_FOUND"),
    ('t.diff(0, key=["nam"])', "TAHOE_DIFF_KEY"),
    ("t.fsck(dryrun=True)", "TypeError"),
    ('Table.create(t.url, {"id":"long"})', "DELTA_TABLE_ALREADY_EXISTS"),
    ('Table.create(root+"/n1", {"id":"int64"})', "DELTA_UNSUPPORTED_DATA_TYPES"),
    ('Table.create(root+"/n2", {"id":"long"}, partition_by=["day"])', "DELTA_PARTITION_COLUMN_NOT_FOUND"),
    ('Table.create(root+"/n3", {"id":"long"}, partition_by=["id"])', "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"),
    ('Table.create(root+"/n5", "id long")', "TAHOE_WRONG_ARGUMENT"),
    ('Table.create(root+"/n6", {"a":"long","A":"long"})', "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"),
    ('Table.create(root+"/n8", {"id":"long"}, cluster_by=["x"])', "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    ('Table.create(root+"/n9", {"id":"long"}, partition_by="id")', "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"),
    ('t.tail(position="x")', "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
    ('list(t.tail(position="x"))', "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
    ('t.history("3")', "TAHOE_WRONG_ARGUMENT"),
    ("t.history(-1)", "DELTA_ILLEGAL_OPTION"),
    ('t.snapshot("x")', "TAHOE_WRONG_ARGUMENT"),
    ("t.uniform.sync()", "DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED"),
    ("t.uniform.upgrade(7)", "DELTA_ICEBERG_COMPAT_VIOLATION.COMPAT_VERSION_NOT_SUPPORTED"),
    ('t.generate("json")', "DELTA_MODE_NOT_SUPPORTED"),
    ('t.purge("id = 1")', "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
    ('notnull.append(pa.table({"id":pa.array([None],pa.int64())}))', "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
    ('checked.append(pa.table({"id":[0]}))', "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
    ('appendonly.delete("id = 1")', "DELTA_CANNOT_MODIFY_APPEND_ONLY"),
    ("missing_file.to_arrow()", "DELTA_FILE_NOT_FOUND"),
    ("missing_log.to_arrow()", "DELTA_VERSIONS_NOT_CONTIGUOUS"),
    ("bad_json.to_arrow()", "DELTA_TXN_LOG_FAILED_INTEGRITY"),
    ("future.to_arrow()", "DELTA_UNSUPPORTED_FEATURES_FOR_READ"),
]
"""Statements and the code of the error, or the name of Python's exception."""

ADVICE = [
    ("Table(parquet_dir).version()", "convert them with `tahoe convert`"),
    ('Table(parquet_dir + "/a.parquet").version()', "The path is a file: pass the folder"),
    ("t.to_arrow(filter=\"nam = 'a'\")", "Did you mean 'name'?"),
    ('t.to_arrow(columns=["nam"])', "Did you mean 'name'?"),
    ('t.to_arrow(colums=["name"])', "Did you mean 'columns'?"),
    ('t.to_arrow(version="1")', "Write version=1, without quotes."),
    ('t.update({"name": "hello"})', "To assign the text, quote it: \"'hello'\"."),
    ('t.update({"name": "hello world"})', "quote it: \"'hello world'\""),
    ('t.update({"id": "\'abc\'"})', "This is the value of column 'id'."),
    ('t.update({"nme": "\'x\'"})', "Did you mean 'name'?"),
    ('t.set_properties({"delta.enableChangeDataFed": "true"})', "Did you mean 'delta.enableChangeDataFeed'?"),
    ('t.set_properties({"delta.feature.deletionVector": "supported"})', "Did you mean 'deletionVectors'?"),
    ('t.drop_feature("deletionVector")', "Did you mean 'deletionVectors'?"),
    ('t.add_columns({"x": "int64"})', "Did you mean 'long'?"),
    ('t.add_columns({"x": "map<string,long>"})', "pass a type of pyarrow"),
    ("t.vacuum(retain_hours=1)", "Did you mean 'retention_hours'?"),
    ("Table.convert_to_delta(parquet_dir)", "is a method of a table, and got a path first"),
    ('t.drop_constraint("c")', "pass if_exists=True"),
    ("t.history(-1)", "limit must be 0 or more"),
]


def _table(path: Path, **properties: str) -> Table:
    table = Table.create(path, SCHEMA, properties=properties)
    table.append(pa.table({"id": [1, 2], "name": ["a", "b"], "day": pa.array([None, None], pa.date32())}))
    return table


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The tables of the statements."""
    monkeypatch.delenv("TAHOE_TRACEBACK", raising=False)
    (tmp_path / "parquet").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "parquet" / "a.parquet")
    checked, missing_file, missing_log, bad_json, future = (
        _table(tmp_path / name) for name in ("checked", "missing_file", "missing_log", "bad_json", "future")
    )
    checked.add_constraint("positive", "id > 0")
    for file in (tmp_path / "missing_file").glob("*.parquet"):
        file.unlink()
    missing_log.append(pa.table({"id": [1]}))
    (tmp_path / "missing_log" / commit_name(1)).unlink()
    (tmp_path / "bad_json" / commit_name(1)).write_text("{nope")
    feature = '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["newer"],"writerFeatures":["newer"]}}'
    (tmp_path / "future" / commit_name(2)).write_text(feature)
    return {
        "pa": pa,
        "tahoe": tahoe,
        "Table": Table,
        "t": _table(tmp_path / "orders"),
        "root": str(tmp_path),
        "parquet_dir": str(tmp_path / "parquet"),
        "notnull": Table.create(tmp_path / "notnull", pa.schema([pa.field("id", pa.int64(), nullable=False)])),
        "appendonly": _table(tmp_path / "appendonly", **{"delta.appendOnly": "true"}),
        "checked": checked,
        "missing_file": missing_file,
        "missing_log": Table(missing_log.url),
        "bad_json": Table(bad_json.url),
        "future": Table(future.url),
    }


OF_A_TABLE = [case for case in MISTAKES if case[0].startswith("t.") and case[1] not in ("TypeError", "TAHOE_WRONG_ARGUMENT")]


def error_of(statement: str, names: dict[str, Any]) -> Exception:
    try:
        eval(statement, names)
    except Exception as error:  # noqa: BLE001 - of any class
        return error
    raise AssertionError(f"{statement} raised nothing")


@pytest.mark.every_case
@pytest.mark.parametrize(("statement", "code"), MISTAKES, ids=[f"{number}" for number in range(len(MISTAKES))])
def test_a_mistake_is_one_short_error(statement: str, code: str, names: dict[str, Any]) -> None:
    error = error_of(statement, names)
    assert getattr(error, "code", type(error).__name__) == code
    shown = "".join(traceback.format_exception(error))
    assert len(shown.splitlines()) <= MOST_LINES + str(error).count("\n"), shown
    assert len(str(error)) <= LONGEST_MESSAGE
    assert "object at 0x" not in str(error)


@pytest.mark.parametrize(("statement", "code"), OF_A_TABLE, ids=[statement for statement, _ in OF_A_TABLE])
def test_an_error_of_a_table_names_the_table(statement: str, code: str, names: dict[str, Any]) -> None:
    assert names["t"].url in str(error_of(statement, names))


@pytest.mark.every_case
@pytest.mark.parametrize(("statement", "advice"), ADVICE, ids=[advice for _, advice in ADVICE])
def test_a_mistake_is_answered_with_the_remedy(statement: str, advice: str, names: dict[str, Any]) -> None:
    assert advice in str(error_of(statement, names))


def test_the_home_folder_may_be_written_as_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Table("~/orders").url == f"file://{tmp_path}/orders"


def test_a_property_without_its_prefix_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _table(tmp_path / "orders").set_properties({"enableChangeDataFeed": "true"})
    assert "did you mean 'delta.enableChangeDataFeed'?" in caplog.text


def test_a_program_prints_few_lines_and_the_whole_traceback_on_request(tmp_path: Path) -> None:
    program = f"import tahoe\ntahoe.Table({str(tmp_path)!r}).to_arrow()"
    environment = {name: value for name, value in os.environ.items() if name != "TAHOE_TRACEBACK"}

    def printed(**more: str) -> list[str]:
        command = [sys.executable, "-c", program]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={**environment, **more}
        ).stderr.splitlines()

    short = printed()
    assert len(short) <= MOST_LINES
    assert "DELTA_TABLE_NOT_FOUND" in short[-1]
    assert len(printed(TAHOE_TRACEBACK="1")) > 2 * MOST_LINES
