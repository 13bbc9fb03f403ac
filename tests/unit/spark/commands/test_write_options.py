"""Options of DataFrame writers → the request of a write."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest, TahoeError, TahoeWarning, Unsupported
from tahoe.spark.commands.write_options import Insert, Matching, WriterCall, insert_request, refuse_dynamic, refuse_matching

PREFIX = "spark.databricks.delta."


def request(mode: str = "Overwrite", settings: dict[str, str] | None = None, **options: str) -> Insert:
    return insert_request(WriterCall(mode, options), settings or {})


def test_rows_that_match_are_named_by_a_condition_or_by_columns():
    assert request(replaceOn="t.a = s.a", targetAlias="t").matching == Matching(on="t.a = s.a")
    assert request(replaceOn="t.a = s.a", targetAlias="t").alias == "t"
    assert request(replaceOn="t.a = s.a").options.replaces_matches and not request().options.replaces_matches
    assert request(REPLACEUSING=" a, b ,a").matching == Matching(using=" a, b ,a", columns=("a", "b"))
    assert request(replaceUsing="a", settings={"spark.sql.sources.partitionOverwriteMode": "dynamic"}).matching is not None


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"replaceOn": "true", "replaceUsing": "a"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
        ({"replaceOn": "true", "dataChange": "false"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
        ({"replaceUsing": "a", "overwriteSchema": "true"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
        ({"replaceUsing": "a", "replaceWhere": "a = 1"}, "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING"),
        (
            {"replaceUsing": "a", "partitionOverwriteMode": "static"},
            "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING",
        ),
        ({"replaceUsing": "a,"}, "DELTA_ILLEGAL_OPTION"),
        ({"useNullIntolerantEqualityWithDPO": "true"}, "DELTA_ILLEGAL_OPTION"),
    ],
    ids=str,
)
def test_options_that_exclude_matching_rows_are_refused(options, code):
    with pytest.raises(InvalidRequest) as caught:
        request(**options)
    assert caught.value.code == code


@pytest.mark.parametrize("option", ["replaceOn", "replaceUsing", "replaceWhere"])
def test_a_mode_that_replaces_nothing_warns_about_options_for_replaced_rows(option):
    with pytest.warns(TahoeWarning, match=option):
        assert request("Append", **{option: "a"}).matching is None


@pytest.mark.parametrize(
    ("setting", "options", "code"),
    [
        ("replaceOn.dataframe.writer.enabled", {"replaceOn": "true"}, "DELTA_OPERATION_NOT_ALLOWED"),
        ("replaceUsing.dataframe.writer.enabled", {"replaceUsing": "a"}, "DELTA_OPERATION_NOT_ALLOWED"),
        (
            "dynamicPartitionOverwrite.enabled",
            {"partitionOverwriteMode": "dynamic"},
            "DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED",
        ),
    ],
)
def test_a_session_may_refuse_an_option(setting, options, code):
    with pytest.raises(Unsupported) as caught:
        request(settings={PREFIX + setting: "False"}, **options)
    assert caught.value.code == code
    assert request(settings={PREFIX + setting: "true"}, **options)


def test_settings_of_replace_where():
    usual, other = (
        request(replaceWhere="a = 1", settings=settings).options
        for settings in (
            {},
            {PREFIX + "replaceWhere.constraintCheck.enabled": "false", PREFIX + "replaceWhere.dataColumns.enabled": "FALSE"},
        )
    )
    assert (usual.checks_rows, usual.replaces_data) == (True, True)
    assert (other.checks_rows, other.replaces_data) == (False, False)


def test_a_table_that_is_replaced_is_replaced_whole():
    options, settings = {"overwriteSchema": "true"}, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
    assert insert_request(WriterCall("Overwrite", options), settings).options.dynamic_partitions
    assert not insert_request(WriterCall("Overwrite", options), settings, replaces_table=True).options.dynamic_partitions


def test_writers_of_whole_tables_refuse_rows_that_match():
    refuse_matching({"mergeSchema": "true"})
    refuse_dynamic({})
    with pytest.raises(TahoeError, match="DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE_REPLACE_ON_OR_USING"):
        refuse_matching({"replaceon": "true"})
    with pytest.raises(TahoeError, match="DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING"):
        refuse_dynamic({"spark.sql.sources.partitionOverwriteMode": "DYNAMIC"})
