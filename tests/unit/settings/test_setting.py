"""Every setting of delta-spark works, causes one warning, or is refused by name; row by row of the tables."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, TahoeWarning, Unsupported
from tahoe.protocol.properties import _ALL_ROWS, FREE_PREFIXES, validate_properties
from tahoe.settings.dataframe_options import (
    READER_OPTIONS,
    WRITER_OPTIONS,
    check_reader_options,
    check_stream_reader_options,
    check_writer_options,
    warn_of_range_without_feed,
)
from tahoe.settings.property_settings import PROPERTIES
from tahoe.settings.session_settings import PREFIX, SESSION_SETTINGS, check_session_settings
from tahoe.settings.setting import Setting, State
from tahoe.settings.warn_once import reset_warnings

ROOT = Path(__file__).parents[3]
UNUSUAL = {
    "delta.autoOptimize.autoCompact": "auto",
    "delta.enableFullRetentionRollback": "false",
    "delta.checkpointRetentionDuration": "interval 3 days",
    "delta.sampleRetentionDuration": "interval 3 days",
    "delta.dropFeatureTruncateHistory.retentionDuration": "interval 3 days",
}


@pytest.fixture(autouse=True)
def no_earlier_warnings() -> Iterator[None]:
    reset_warnings()
    yield
    reset_warnings()


def assert_behaves_as_its_row(setting: Setting, apply: Callable[[dict[str, str]], object], value: str) -> None:
    """Apply the setting with its usual values and with `value`, and compare the effect with its row."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for usual in setting.usual:
            apply({setting.name: usual})
        if setting.state is State.WORKS:
            apply({setting.name: value})
            return
    if setting.state is State.REFUSED:
        with pytest.raises(Unsupported, match=setting.name) as refused:
            apply({setting.name: value})
        assert setting.why in refused.value.message
        return
    with pytest.warns(TahoeWarning, match=f"'{setting.name}' = '{value}' is not followed: ") as issued:
        apply({setting.name: value})
    assert setting.why and setting.why in str(issued[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apply({setting.name.upper() if setting.kind != "session setting" else setting.name: value})


@pytest.mark.parametrize("setting", [row for row in PROPERTIES if row.state is not State.WORKS], ids=lambda setting: setting.name)
def test_a_property_without_effect_causes_one_warning(setting: Setting) -> None:
    assert_behaves_as_its_row(setting, validate_properties, UNUSUAL.get(setting.name, "true"))


def test_every_property_has_a_row_and_every_row_a_property() -> None:
    keys = {row.key for row in _ALL_ROWS} | set(FREE_PREFIXES)
    assert {setting.name for setting in PROPERTIES} == keys
    assert len(PROPERTIES) == len(keys)


def test_working_properties_and_usual_values_cause_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validate_properties(
            {"delta.appendOnly": "true", "delta.checkpointInterval": "3", "mine": "x", "delta.autoOptimize": "false"}
        )


@pytest.mark.parametrize("setting", WRITER_OPTIONS, ids=lambda setting: setting.name)
def test_a_writer_option_behaves_as_its_row_states(setting: Setting) -> None:
    assert_behaves_as_its_row(setting, lambda options: check_writer_options(options, overwrites=True), "some")


@pytest.mark.parametrize("setting", READER_OPTIONS, ids=lambda setting: setting.name)
def test_a_reader_option_behaves_as_its_row_states(setting: Setting) -> None:
    assert_behaves_as_its_row(setting, lambda options: check_reader_options({"readChangeFeed": "true", **options}), "some")


@pytest.mark.parametrize("setting", SESSION_SETTINGS, ids=lambda setting: setting.name.removeprefix(PREFIX))
def test_a_session_setting_behaves_as_its_row_states(setting: Setting) -> None:
    assert_behaves_as_its_row(setting, check_session_settings, "some")


def test_options_that_lack_the_option_they_require_cause_a_warning() -> None:
    with pytest.warns(TahoeWarning, match="Only mode 'overwrite' replaces rows"):
        check_writer_options({"replaceWhere": "id = 1"}, overwrites=False)
    with pytest.warns(TahoeWarning, match="It requires readChangeFeed"):
        warn_of_range_without_feed({"STARTINGVERSION": "1"})


def test_a_setting_unknown_to_delta_spark_causes_a_warning() -> None:
    with pytest.warns(TahoeWarning, match="has no setting of this name"):
        check_session_settings({PREFIX + "schema.autoMerge.enable": "true", "spark.sql.ansi.enabled": "true"})
    with pytest.warns(TahoeWarning, match="has no setting of this name"):
        check_session_settings({PREFIX + "streaming.allowSourceColumnRenamed.ckpt_7": "3"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_session_settings({PREFIX + "streaming.allowSourceColumnRename.ckpt_-7": "3"})


def test_settings_of_delta_spark_with_other_prefixes_cause_a_warning() -> None:
    with pytest.warns(
        TahoeWarning,
        match=r"'spark.delta.logStore.s3.impl' = 'x' is not followed: Tahoe commits with the put-if-absent of the storage itself",
    ):
        check_session_settings({"spark.delta.logStore.s3.impl": "x"})
    with pytest.warns(TahoeWarning, match="no setting of this name"):
        check_session_settings({"spark.databricks.io.skipping.mdc.noise": "true"})


def test_each_working_session_setting_is_named_in_a_test() -> None:
    """By its full name, or by a suffix, such as ``useMetadataLog`` of ``convert.useMetadataLog``."""
    tests = "".join(file.read_text() for file in (ROOT / "tests").rglob("*.py"))
    names = [setting.name.removeprefix(PREFIX) for setting in SESSION_SETTINGS if setting.state is State.WORKS]
    ends = {name: [name, name.partition(".")[2], name.rpartition("minCubeSize.")[2]] for name in names}
    assert [name for name in names if not any(f'{end}"' in tests for end in ends[name])] == []


def test_no_setting_has_two_rows() -> None:
    for settings in (PROPERTIES, WRITER_OPTIONS, READER_OPTIONS, SESSION_SETTINGS):
        names = [setting.name.lower() for setting in settings]
        assert len(names) == len(set(names))


def test_columns_with_statistics_must_be_columns(tmp_path: Path) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("s", pa.struct([("a", pa.int64())])), ("l", pa.list_(pa.int64())), ("day", pa.string())]
    )
    table = Table.create(tmp_path / "t", schema, partition_by=["day"])
    table.set_properties({"delta.dataSkippingStatsColumns": "id,S.a"})
    for named, code in (
        ("id,nope", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("s.b", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("day", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"),
        ("l", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
        ("id,ID", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
    ):
        for attempt in (
            lambda named=named: table.set_properties({"delta.dataSkippingStatsColumns": named}),
            lambda named=named: Table.create(
                tmp_path / "u", schema, partition_by=["day"], properties={"delta.dataSkippingStatsColumns": named}
            ),
        ):
            with pytest.raises(InvalidRequest) as refused:
                attempt()
            assert refused.value.code == code


@pytest.mark.parametrize(
    ("asked", "of_new", "of_old"),
    [
        ({"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}, (1, 1), (1, 2)),  # which stand for no feature
        ({"delta.minReaderVersion": "1", "delta.minWriterVersion": "1"}, (1, 1), (1, 2)),
        ({"delta.minReaderVersion": "2"}, (1, 2), (1, 2)),
        ({"delta.minWriterVersion": "7"}, (1, 1), (1, 2)),
        ({"delta.minReaderVersion": "2", "delta.minWriterVersion": "3"}, (1, 3), (1, 3)),
        ({"delta.minReaderVersion": "2", "delta.minWriterVersion": "6"}, (2, 6), (2, 6)),
        ({"delta.feature.DELETIONvectors": "Enabled"}, (3, 7), (3, 7)),
    ],
)
def test_properties_set_the_versions_of_a_new_table_and_upgrade_those_of_another(tmp_path: Path, asked, of_new, of_old) -> None:
    new = Table.create(tmp_path / "new", pa.schema([("id", pa.int64())]), properties=asked)
    old = Table.create(tmp_path / "old", pa.schema([("id", pa.int64())]))
    old.set_properties(asked)
    for table, versions in ((new, of_new), (old, of_old)):
        table.append(pa.table({"id": [1]}))
        protocol = table.snapshot().protocol
        assert (protocol.min_reader_version, protocol.min_writer_version) == versions
        features = table.snapshot().config.features
        assert ({"appendOnly", "invariants"} <= features) == (versions != (1, 1))
        assert table.check() == []


def test_the_settings_page_is_up_to_date() -> None:
    printed = subprocess.run(
        [sys.executable, "scripts/settings_table.py"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout == (ROOT / "docs/settings.md").read_text(), "run `make docs`"


@pytest.mark.parametrize(
    ("check", "name", "meant"),
    [
        (lambda options: check_writer_options(options, overwrites=False), "mergeShema", "mergeSchema"),
        (lambda options: check_writer_options(options, overwrites=True), "overwritesSchema", "overwriteSchema"),
        (lambda options: check_writer_options(options, overwrites=True), "replaceWere", "replaceWhere"),
        (check_reader_options, "versionAsOff", "versionAsOf"),
        (check_reader_options, "readChangeFed", "readChangeFeed"),
        (check_stream_reader_options, "maxFilePerTrigger", "maxFilesPerTrigger"),
        (check_session_settings, PREFIX + "schema.autoMerg.enabled", PREFIX + "schema.autoMerge.enabled"),
    ],
)
def test_a_misspelled_option_or_setting_is_reported_with_the_name_meant(
    check: Callable[[dict[str, str]], object], name: str, meant: str
) -> None:
    with pytest.warns(TahoeWarning, match=f"'{name}'.*Did you mean '{meant}'"):
        check({name: "true"})


@pytest.mark.parametrize(
    "name", ["header", "inferSchema", "checkpointLocation", "multiLine", "recursiveFileLookup", "queryName", "io.size"]
)
def test_options_of_other_formats_cause_no_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for check in (
            check_reader_options,
            check_stream_reader_options,
            lambda options: check_writer_options(options, overwrites=True),
        ):
            check({name: "true"})
