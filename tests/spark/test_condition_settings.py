"""Settings of a session that change the meaning of conditions: Tahoe over Spark Connect must not select files by its own parser then."""

from __future__ import annotations

import pytest

from tests.session_settings import with_settings

pytestmark = pytest.mark.filterwarnings("ignore:The SQL config .* has been deprecated")

TEXTS = ["1", "01", "1.0", "x", None, "a\\nb", "p"]
"""The partitions; `\\n` is a backslash and a letter."""

CASES = {
    "a name in double quotes": ({"spark.sql.ansi.doubleQuotedIdentifiers": "true"}, "\"p\" = 'p'", ["p"]),
    "a text in double quotes": ({}, "\"p\" = 'p'", TEXTS),
    "a backslash": ({"spark.sql.parser.escapedStringLiterals": "true"}, "p = 'a\\nb'", ["a\\nb"]),
    "an escape": ({}, "p = 'a\\nb'", []),
    "a cast": ({"spark.sql.ansi.enabled": "false"}, "CAST(p AS INT) = 1", ["1", "01", "1.0"]),
    "a number": ({"spark.sql.ansi.enabled": "false"}, "p = 1", ["1", "01", "1.0"]),
    "an element": ({"spark.sql.ansi.enabled": "false"}, "array(p)[1] IS NULL", TEXTS),
    "a constant": ({"spark.sql.ansi.enabled": "false"}, "1 / 0 IS NULL", TEXTS),
}


@pytest.fixture
def table(either_session, tmp_path):
    name = f"delta.`{tmp_path}`"
    either_session.sql(f"CREATE TABLE {name} (p STRING, s STRING) USING delta PARTITIONED BY (p)")
    values = ", ".join(f"({text}, {text})" for text in ("NULL" if text is None else f"r'{text}'" for text in TEXTS))
    either_session.sql(f"INSERT INTO {name} VALUES {values}")
    return name


@pytest.mark.parametrize("name", CASES)
def test_a_condition_means_what_it_means_in_the_session(either_session, table, name):
    settings, condition, selected = CASES[name]
    with with_settings(either_session, settings):
        either_session.sql(f"UPDATE {table} SET s = 'new' WHERE {condition}")
        updated = [row.p for row in either_session.table(table).where("s = 'new'").collect()]
        either_session.sql(f"DELETE FROM {table} WHERE {condition}")
    left = [row.p for row in either_session.table(table).collect()]
    assert sorted(map(str, updated)) == sorted(map(str, selected))
    assert sorted(map(str, left)) == sorted(str(text) for text in TEXTS if text not in selected)


def test_a_timestamp_is_one_without_a_time_zone(either_session, tmp_path):
    name = f"delta.`{tmp_path}`"
    either_session.sql(f"CREATE TABLE {name} (at TIMESTAMP_NTZ) USING delta")
    for hour in (1, 3):
        either_session.sql(f"INSERT INTO {name} VALUES (TIMESTAMP_NTZ'2026-01-31 0{hour}:00:00')")
    settings = {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "America/New_York"}
    with with_settings(either_session, settings):
        either_session.sql(f"DELETE FROM {name} WHERE at > TIMESTAMP'2026-01-31 02:00:00'")
    assert [row.at.hour for row in either_session.table(name).collect()] == [1]


@pytest.mark.parametrize("name", ["a name in double quotes", "a cast", "a number"])
def test_optimize_selects_these_partitions(either_session, table, name):
    settings, condition, selected = CASES[name]
    values = ", ".join(f"(r'{text}', 'more')" for text in TEXTS if text is not None)
    either_session.sql(f"INSERT INTO {table} VALUES {values}")
    with with_settings(either_session, settings):
        metrics = either_session.sql(f"OPTIMIZE {table} WHERE {condition}").first().metrics
    assert (metrics.numFilesRemoved, metrics.numFilesAdded) == (2 * len(selected), len(selected))
