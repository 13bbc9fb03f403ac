"""Every setting of the reference: works, is told of once, or is refused by name; row by row of the tables."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.exceptions import InvalidRequest, TahoeWarning, Unsupported
from tahoe.knobs.knob import Knob, State
from tahoe.knobs.of_options import READER_OPTIONS, WRITER_OPTIONS, reader_given, writer_given
from tahoe.knobs.of_properties import PROPERTIES
from tahoe.knobs.of_sessions import CONFS, PREFIX, session_has
from tahoe.knobs.told import forget_what_was_told
from tahoe.protocol.properties import _ALL_ROWS, FREE_PREFIXES, validate_properties
from tahoe.table import Table

ROOT = Path(__file__).parents[3]
UNUSUAL = {
    "delta.autoOptimize.autoCompact": "auto",
    "delta.enableFullRetentionRollback": "false",
    "delta.checkpointRetentionDuration": "interval 3 days",
    "delta.sampleRetentionDuration": "interval 3 days",
    "delta.dropFeatureTruncateHistory.retentionDuration": "interval 3 days",
}


@pytest.fixture(autouse=True)
def nothing_told() -> Iterator[None]:
    forget_what_was_told()
    yield
    forget_what_was_told()


def holds(knob: Knob, give: Callable[[dict[str, str]], object], value: str) -> None:
    """What the row says is what happens."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for usual in knob.usual:
            give({knob.name: usual})
        if knob.state is State.WORKS:
            give({knob.name: value})
            return
    if knob.state is State.REFUSED:
        with pytest.raises(Unsupported, match=knob.name) as refused:
            give({knob.name: value})
        assert knob.why in refused.value.message
        return
    with pytest.warns(TahoeWarning, match=f"'{knob.name}' = '{value}' is not followed: ") as told:
        give({knob.name: value})
    assert knob.why and knob.why in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        give({knob.name.upper() if knob.kind != "session setting" else knob.name: value})


@pytest.mark.parametrize("knob", [one for one in PROPERTIES if one.state is not State.WORKS], ids=lambda knob: knob.name)
def test_a_property_that_changes_nothing_is_told_of_once(knob: Knob) -> None:
    holds(knob, validate_properties, UNUSUAL.get(knob.name, "true"))


def test_every_property_has_a_row_and_every_row_a_property() -> None:
    known = {row.key for row in _ALL_ROWS} | set(FREE_PREFIXES)
    assert {knob.name for knob in PROPERTIES} == known
    assert len(PROPERTIES) == len(known)


def test_defaults_of_properties_that_work_are_set_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validate_properties(
            {"delta.appendOnly": "true", "delta.checkpointInterval": "3", "mine": "x", "delta.autoOptimize": "false"}
        )


@pytest.mark.parametrize("knob", WRITER_OPTIONS, ids=lambda knob: knob.name)
def test_an_option_of_writers_does_what_its_row_says(knob: Knob) -> None:
    holds(knob, lambda options: writer_given(options, overwrites=True), "some")


@pytest.mark.parametrize("knob", READER_OPTIONS, ids=lambda knob: knob.name)
def test_an_option_of_readers_does_what_its_row_says(knob: Knob) -> None:
    holds(knob, lambda options: reader_given({"readChangeFeed": "true", **options}), "some")


@pytest.mark.parametrize("knob", CONFS, ids=lambda knob: knob.name.removeprefix(PREFIX))
def test_a_setting_of_the_session_does_what_its_row_says(knob: Knob) -> None:
    holds(knob, session_has, "some")


def test_options_that_depend_on_others_are_told_of() -> None:
    with pytest.warns(TahoeWarning, match="Only mode 'overwrite' replaces rows"):
        writer_given({"replaceWhere": "id = 1"}, overwrites=False)
    with pytest.warns(TahoeWarning, match="It goes with readChangeFeed"):
        reader_given({"STARTINGVERSION": "1"})


def test_a_setting_that_the_reference_does_not_know_is_told_of() -> None:
    with pytest.warns(TahoeWarning, match="has no setting of this name"):
        session_has({PREFIX + "schema.autoMerge.enable": "true", "spark.sql.ansi.enabled": "true"})
    with pytest.warns(TahoeWarning, match="has no setting of this name"):
        session_has({PREFIX + "streaming.allowSourceColumnRenamed.ckpt_7": "3"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session_has({PREFIX + "streaming.allowSourceColumnRename.ckpt_-7": "3"})


def test_settings_of_the_reference_with_other_beginnings_are_not_passed_over() -> None:
    with pytest.warns(
        TahoeWarning, match=r"'spark.delta.logStore.s3.impl' = 'x' is not followed: Commits are put by what storage itself has"
    ):
        session_has({"spark.delta.logStore.s3.impl": "x"})
    with pytest.warns(TahoeWarning, match="no setting of this name"):
        session_has({"spark.databricks.io.skipping.mdc.noise": "true"})


def test_each_setting_of_the_session_that_works_is_named_by_a_test() -> None:
    """By its whole name, or by an end of it, as in ``convert`` and its ``useMetadataLog``."""
    told = "".join(file.read_text() for file in (ROOT / "tests").rglob("*.py"))
    names = [knob.name.removeprefix(PREFIX) for knob in CONFS if knob.state is State.WORKS]
    ends = {name: [name, name.partition(".")[2], name.rpartition("minCubeSize.")[2]] for name in names}
    assert [name for name in names if not any(f'{end}"' in told for end in ends[name])] == []


def test_no_setting_has_two_rows() -> None:
    for knobs in (PROPERTIES, WRITER_OPTIONS, READER_OPTIONS, CONFS):
        names = [knob.name.lower() for knob in knobs]
        assert len(names) == len(set(names))


def test_columns_with_statistics_must_be_columns(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int64())])), ("day", pa.string())])
    table = Table.create(tmp_path / "t", schema, partition_by=["day"])
    table.set_properties({"delta.dataSkippingStatsColumns": "id,S.a"})
    for named, code in (
        ("id,nope", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("s.b", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("day", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"),
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


def test_the_page_is_printed_from_the_tables() -> None:
    printed = subprocess.run(
        [sys.executable, "scripts/knob_table.py"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout == (ROOT / "docs/knobs.md").read_text(), "run `make docs`"
