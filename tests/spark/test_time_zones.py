"""The session's time zone in classic sessions and over Spark Connect: every name that Spark accepts, and times in paths."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from tahoe import Table

pytestmark = pytest.mark.spark
_SETTING = "spark.sql.session.timeZone"


@pytest.fixture
def session(either_session: Any) -> Iterator[Any]:
    before = either_session.conf.get(_SETTING)
    yield either_session
    either_session.conf.set(_SETTING, before)


@pytest.mark.parametrize(
    "zone", ["+08:00", "-03:30", "+8:00", "GMT+8", "UTC-08:00", "Z", "PST", "CST", "IST", "EST", "Europe/Paris", "Etc/GMT+3"]
)
def test_expressions_are_evaluated_in_every_zone_that_spark_accepts(session: Any, tmp_path: Path, zone: str) -> None:
    session.conf.set(_SETTING, zone)
    name = f"delta.`{tmp_path / 't'}`"
    evening = "TIMESTAMP'2026-01-01 23:00:00'"
    session.sql(
        f"CREATE TABLE {name} (id INT, at TIMESTAMP DEFAULT {evening}, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), hour INT "
        "GENERATED ALWAYS AS (hour(at))) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    session.sql(f"INSERT INTO {name} (id) VALUES (1), (2)")
    session.sql(f"ALTER TABLE {name} ADD CONSTRAINT late CHECK (hour(at) >= 23 AND at >= '2026-01-01 23:00:00')")
    session.sql(f"UPDATE {name} SET at = at + INTERVAL 30 MINUTES WHERE at = '2026-01-01 23:00:00' AND id = 2")
    session.sql(f"DELETE FROM {name} WHERE date_format(at, 'HH:mm') = '23:00'")
    stored = session.sql(f"SELECT id, CAST(at AS STRING), day, hour FROM {name}").collect()
    assert stored == [(2, "2026-01-01 23:30:00", date(2026, 1, 1), 23)]
    plain = Table(tmp_path / "t", time_zone=zone)
    assert plain.to_arrow(filter="at = '2026-01-01 23:30:00'").num_rows == 1
    instant = session.sql("SELECT unix_micros(TIMESTAMP'2026-01-01 23:30:00')").first()[0]
    assert plain.to_arrow()["at"].cast("int64").to_pylist() == [instant]


def test_a_time_in_a_path_is_the_sessions_local_time(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for number in range(3):
        session.range(number, number + 1).write.format("delta").mode("append").save(str(path))
        at = datetime(2026, 1, 1, 12, number, tzinfo=UTC).timestamp()
        os.utime(path / "_delta_log" / f"{number:020}.json", (at, at))
    session.conf.set(_SETTING, "America/Los_Angeles")
    older = f"{path}@20260101040130000"
    assert session.read.format("delta").load(older).count() == 2
    assert session.sql(f"SELECT * FROM delta.`{older}`").count() == 2
    assert session.read.format("delta").option("path", older).load().count() == 2
    session.conf.set(_SETTING, "GMT+1")
    assert session.read.format("delta").load(f"{path}@20260101130030000").count() == 1
