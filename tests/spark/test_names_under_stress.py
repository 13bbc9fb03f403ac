"""Names under stress: many threads, pinned and not, views over views, sessions side by side, streams; and hostile identifiers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tahoe.tables import DeltaTable
from tests.spark.names_under_stress import LIVES


@pytest.fixture(scope="module")
def database(spark):
    spark.sql("CREATE DATABASE stress")
    yield
    spark.sql("DROP DATABASE stress CASCADE")


@pytest.mark.parametrize("life", LIVES)
def test_with_threads_pinned(spark, database, tmp_path, life):
    LIVES[life](spark, tmp_path)


@pytest.mark.soak
@pytest.mark.own_jvm
def test_with_threads_that_are_not_pinned(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.names_under_stress", str(tmp_path), *LIVES],
        env={**os.environ, "PYSPARK_PIN_THREAD": "false"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("PASSED")] == list(LIVES)


PARTS = (
    "a b",
    "a`b",
    "a.b",
    "a'b",
    'a"b',
    "a\\b",
    "a;b",
    "a--b",
    "a/*b*/",
    "a$b",
    "${b}",
    "{b}",
    "%s",
    "%20",
    "a\tb",
    "a=b",
    "a,b",
    "a(b)",
    "ä",
    "表",
    "🙂",
    "SELECT",
    "null",
    "*",
    "_",
)
# Columns of every part alone, doubled, and quoted in each way that programs get wrong: 100 in all.
ALL_IDENTIFIERS = [name for part in PARTS for name in (part, part * 2 + "2", f"`{part}`", f"'{part}' OR 1=1 --")]
# Each part once, and each way.
SAMPLED_IDENTIFIERS = [ALL_IDENTIFIERS[4 * number + number // 4 % 4] for number in range(len(PARTS))]


@pytest.mark.parametrize(
    "identifiers", [SAMPLED_IDENTIFIERS, pytest.param(ALL_IDENTIFIERS, marks=pytest.mark.soak)], ids=["sample", "all"]
)
def test_hostile_identifiers_and_strings_come_through_unharmed(spark, tmp_path, identifiers):
    assert len(set(identifiers)) in (25, 100)
    quoted = ["`" + name.replace("`", "``") + "`" for name in identifiers]
    text = [name.replace("\\", "\\\\").replace("'", "\\'") for name in identifiers]
    spark.conf.set("spark.sql.variable.substitute", "false")  # else Spark itself puts something in the place of ${b}
    spark.sql(
        f"CREATE TABLE hostile (id INT, {', '.join(f'{item} STRING' for item in quoted)}) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')"
    )
    try:
        values = ", ".join(f"'{item}'" for item in text)
        spark.sql(f"INSERT INTO hostile VALUES (1, {values})")
        assert spark.table("hostile").columns == ["id", *identifiers]
        assert list(spark.table("hostile").first())[1:] == identifiers
        # A quarter of them in the conditions and assignments of each kind of statement.
        named = list(zip(quoted, text, strict=True))
        updated, deleted, merged, selected = (named[place::4] for place in range(4))
        sets = ", ".join(f"{name} = concat({name}, '!')" for name, _ in updated)
        spark.sql(f"UPDATE hostile SET {sets} WHERE {_all('{name} = {value}', updated)}")
        spark.sql(f"DELETE FROM hostile WHERE NOT ({_all('{name} <=> {value}', deleted)})")
        source = ", ".join(f"'{value}' AS {name}" for name, value in merged)
        sets = ", ".join(f"t.{name} = s.{name}" for name, _ in merged)
        matched = _all("t.{name} = s.{name}", merged)
        spark.sql(f"MERGE INTO hostile t USING (SELECT {source}) s ON {matched} WHEN MATCHED THEN UPDATE SET {sets}")
        actual = spark.sql(
            f"SELECT {', '.join(name for name, _ in selected)} FROM hostile WHERE {_all('{name} = {value}', selected)}"
        )
        assert list(actual.first()) == identifiers[3::4]
        expected = [item + "!" if place % 4 == 0 else item for place, item in enumerate(identifiers)]
        assert [list(row)[1:] for row in spark.table("hostile").collect()] == [expected]
        assert list(DeltaTable.forName(spark, "hostile").toDF().first())[1:] == expected
        assert DeltaTable.forName(spark, "hostile")._table.check(deep=True) == []
    finally:
        spark.conf.unset("spark.sql.variable.substitute")
        spark.sql("DROP TABLE hostile")


def _all(condition: str, named: list[tuple[str, str]]) -> str:
    return " AND ".join(condition.replace("{name}", name).replace("{value}", f"'{value}'") for name, value in named)
