"""Where a query reads a table by path, and what Spark gets instead."""

from __future__ import annotations

import pytest

from tahoe.exceptions import Unsupported
from tahoe.sql.parse import parse
from tahoe.sql.references import rewritten
from tahoe.sql.statements import Query


def _to_spark(text: str) -> str:
    found = parse(text)
    assert isinstance(found, Query)
    return rewritten(found.text, found.references, "f")[0]


@pytest.mark.parametrize(
    ("text", "to_spark"),
    [
        ("SELECT * FROM delta.`/p`", "SELECT * FROM f('/p')"),
        ("select a from DELTA . `/p` t where a>1", "select a from f('/p') t where a>1"),
        (
            "SELECT * FROM delta.`/p` AS t(a, b), delta.`/q`, LATERAL explode(t.a)",
            "SELECT * FROM f('/p') AS t(a, b), f('/q'), LATERAL explode(t.a)",
        ),
        (
            "SELECT * FROM x JOIN delta.`/p` p ON x.delta = p.a, delta.`/q` WHERE delta.`z` IN (SELECT b FROM delta.`/r`)",
            "SELECT * FROM x JOIN f('/p') p ON x.delta = p.a, f('/q') WHERE delta.`z` IN (SELECT b FROM f('/r'))",
        ),
        ("SELECT * FROM (delta.`/p` CROSS JOIN (delta.`/q`))", "SELECT * FROM (f('/p') CROSS JOIN (f('/q')))"),
        ("WITH a AS (FROM delta.`/p`) SELECT * FROM a, delta.`/q`", "WITH a AS (FROM f('/p')) SELECT * FROM a, f('/q')"),
        ("FROM delta.`/p` SELECT a, delta.`b`", "FROM f('/p') SELECT a, delta.`b`"),
        (
            "FROM delta.`/p` |> WHERE a > 1 |> JOIN delta.`/q` USING (a) |> SELECT a, delta.`b`",
            "FROM f('/p') |> WHERE a > 1 |> JOIN f('/q') USING (a) |> SELECT a, delta.`b`",
        ),
        (
            "SELECT (SELECT max(a) FROM delta.`/p`), delta.`x` FROM t delta",
            "SELECT (SELECT max(a) FROM f('/p')), delta.`x` FROM t delta",
        ),
        (
            "SELECT 1 UNION ALL SELECT a FROM delta.`/p` UNION TABLE delta.`/q`",
            "SELECT 1 UNION ALL SELECT a FROM f('/p') UNION (SELECT * FROM f('/q'))",
        ),
        ("TABLE delta.`/p`", "(SELECT * FROM f('/p'))"),
        ("EXPLAIN EXTENDED SELECT * FROM delta.`/p`", "EXPLAIN EXTENDED SELECT * FROM f('/p')"),
        ("CREATE TEMP VIEW v AS SELECT * FROM delta.`/p`", "CREATE TEMP VIEW v AS SELECT * FROM f('/p')"),
        ("CREATE TABLE t USING parquet AS SELECT * FROM delta.`/p`", "CREATE TABLE t USING parquet AS SELECT * FROM f('/p')"),
        ("INSERT INTO t SELECT * FROM delta.`/p`", "INSERT INTO t SELECT * FROM f('/p')"),
        ("INSERT INTO t TABLE delta.`/p`", "INSERT INTO t (SELECT * FROM f('/p'))"),
        ("INSERT INTO delta SELECT * FROM delta.`/p`", "INSERT INTO delta SELECT * FROM f('/p')"),
        ("SELECT * FROM delta.`/p` TABLESAMPLE (5 ROWS) s", "SELECT * FROM (SELECT * FROM f('/p')) TABLESAMPLE (5 ROWS) s"),
        ("SELECT extract(YEAR FROM delta.`d`) FROM delta.`/p` delta", "SELECT extract(YEAR FROM delta.`d`) FROM f('/p') delta"),
        ("SELECT array(SELECT a FROM delta.`/p`)", "SELECT array(SELECT a FROM f('/p'))"),
        (
            "SELECT '/*' FROM delta.`/p` -- FROM delta.`/q`\nWHERE a = 'FROM delta.`/r`'",
            "SELECT '/*' FROM f('/p') -- FROM delta.`/q`\nWHERE a = 'FROM delta.`/r`'",
        ),
        ("SELECT * FROM delta.`/it's \\n`", "SELECT * FROM f(X'2F69742773205C6E')"),
        ("SELECT * FROM delta.`/a``b` `delta.``/p```", "SELECT * FROM f('/a`b') `delta.``/p```"),
        ("SELECT abfs://x--y FROM delta.`s3://b/{x}`", "SELECT abfs://x--y FROM f('s3://b/{x}')"),
        ("SELECT * FROM delta.`/p@v3`", "SELECT * FROM f('/p@v3')"),
    ],
)
def test_only_the_slices_that_name_tables_change(text, to_spark):
    assert _to_spark(text) == to_spark


@pytest.mark.parametrize(
    ("travel", "arguments"),
    [
        ("VERSION AS OF 3", "'version', 3"),
        ("FOR SYSTEM_VERSION AS OF '3'", "'version', '3'"),
        ("version as of :v", "'version', :v"),
        ("TIMESTAMP AS OF '2026-01-01'", "'timestamp', '2026-01-01'"),
        ("FOR SYSTEM_TIME AS OF DATE '2026-01-01'", "'timestamp', DATE '2026-01-01'"),
        ("TIMESTAMP AS OF current_timestamp() - INTERVAL 1 HOUR", "'timestamp', current_timestamp() - INTERVAL 1 HOUR"),
        (
            "TIMESTAMP AS OF now() - INTERVAL '1' DAY - INTERVAL 2 HOURS 3.5 SECONDS",
            "'timestamp', now() - INTERVAL '1' DAY - INTERVAL 2 HOURS 3.5 SECONDS",
        ),
        ("TIMESTAMP AS OF now() - INTERVAL '1 2' DAY TO HOUR", "'timestamp', now() - INTERVAL '1 2' DAY TO HOUR"),
        ("TIMESTAMP AS OF CAST('2026-01-01' AS TIMESTAMP)", "'timestamp', CAST('2026-01-01' AS TIMESTAMP)"),
        ("TIMESTAMP AS OF '2026-01-01'::timestamp + (INTERVAL 1 DAY)", "'timestamp', '2026-01-01'::timestamp + (INTERVAL 1 DAY)"),
        (
            "TIMESTAMP AS OF CASE WHEN true THEN 'a' ELSE CASE WHEN false THEN 'b' END END",
            "'timestamp', CASE WHEN true THEN 'a' ELSE CASE WHEN false THEN 'b' END END",
        ),
        ("TIMESTAMP AS OF '2026-' || '01-01'", "'timestamp', '2026-' || '01-01'"),
        ("TIMESTAMP AS OF {when}", "'timestamp', {when}"),
        ("TIMESTAMP AS OF ?", "'timestamp', ?"),
    ],
)
@pytest.mark.parametrize("after", ["", " t", " AS t JOIN u ON t.a = u.a", " WHERE a = 1", ", x"])
def test_a_version_or_time_is_an_argument_in_the_users_own_words(travel, arguments, after):
    assert _to_spark(f"SELECT * FROM delta.`/p` {travel}{after}") == f"SELECT * FROM f('/p', {arguments}){after}"


def test_as_of_something_else_is_an_alias():
    assert _to_spark("SELECT * FROM delta.`/p` version") == "SELECT * FROM f('/p') version"
    assert _to_spark("SELECT * FROM delta.`/p` timestamp JOIN x") == "SELECT * FROM f('/p') timestamp JOIN x"


def test_options_of_a_relation_are_refused_by_name():
    with pytest.raises(Unsupported, match=r"delta\.`/p`"):
        parse("SELECT * FROM delta.`/p` WITH ('versionAsOf' = '1')")


def test_what_was_replaced_is_told_for_messages():
    found = parse("SELECT * FROM delta.`/p` VERSION AS OF 3, delta.`/q`")
    assert isinstance(found, Query)
    replaced = rewritten(found.text, found.references, "f")[1]
    assert [(one.written, one.generated) for one in replaced] == [
        ("delta.`/p` VERSION AS OF 3", "f('/p', 'version', 3)"),
        ("delta.`/q`", "f('/q')"),
    ]


def test_a_statement_that_runs_once_gives_each_call_its_number():
    found = parse("SELECT * FROM delta.`/p` VERSION AS OF 3, delta.`/q`")
    assert isinstance(found, Query) and not found.is_kept
    assert rewritten(found.text, found.references, "f", 7)[0] == "SELECT * FROM f('/p', 'version', 3, 7), f('/q', 7)"
    for text in (
        "CREATE TEMP VIEW v AS SELECT * FROM delta.`/p`",
        "BEGIN SELECT * FROM delta.`/p`; END",
        "CACHE TABLE v AS SELECT * FROM delta.`/p`",
    ):
        kept = parse(text)
        assert isinstance(kept, Query) and kept.is_kept
