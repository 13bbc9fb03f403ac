"""The options of the portable data source."""

from __future__ import annotations

import pytest

from tahoe.spark.portable.data_source_options import PARTITION_BY, columns_in, settings_in, without_own


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", None),
        (" , ", None),
        ("a", ["a"]),
        ("a, b c ,d", ["a", "b c", "d"]),
        ("`a`, `b, c`,`d``e`", ["a", "b, c", "d`e"]),
    ],
)
def test_names_of_columns(text, names):
    assert columns_in({"PARTITIONBY": text}, PARTITION_BY) == names


def test_own_options_are_no_options_of_a_writer():
    options = {"partitionBy": "a", "ClusterBy": "a", "coordinator": "x", "TIMEZONE": "UTC", "sessionSettings": '{"a": "b"}'}
    assert without_own(options | {"mergeSchema": "true"}) == {"mergeSchema": "true"}
    assert settings_in(options) == {"a": "b"} and settings_in({}) == {}
