"""The texts of CHECK constraints that a client of Spark Connect lets the server evaluate."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tahoe.base.exceptions import Unsupported
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import constraints_of
from tahoe.spark.write import server_rules, stored_expressions
from tahoe.spark.write.server_rules import refused_parts


@pytest.mark.parametrize(
    "text",
    [
        "regexp_extract(v, '^([a-z]+)-', 1) <> ''",
        "array_max(l) < 10 AND size(l) > 0",
        "v LIKE ANY ('a%', '%z')",
        "forall(l, x -> x > 0) OR `a b` IS NULL",
        "CASE WHEN k IN (1, 2) THEN upper(v) = 'A' ELSE (k > 1) END",
        "CAST(v AS DECIMAL(5, 2)) BETWEEN 1.5 AND 2e3",
        "extract(YEAR FROM d) > 1999 AND trim(BOTH ' ' FROM v) <> 'SELECT (1)'",
        "size(map('a', 1)) = 1 AND (reduce(l, 0, (a, b) -> a + b) > 0)",
        "m['k'] % 2 = 0 AND s.a::INT > ~1",
        "d > DATE'2020-01-01' AND b = X'0A'",
    ],
)
def test_deterministic_functions_of_the_row_pass(text: str) -> None:
    assert list(refused_parts(text)) == []


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("reflect('java.lang.System', 'exit', 1) IS NULL", "reflect"),
        ("`reflect`('java.lang.System', 'exit', 1) IS NULL", "`reflect`"),
        ("java_method('a', 'b') = 1", "java_method"),
        ("rand() < 1", "rand"),
        ("my_function(k) > 0", "my_function"),
        ("db.upper(v) = 'A'", "upper"),
        ("sum(k) > 0", "sum"),
        ("row_number() OVER (ORDER BY k) > 0", "row_number"),
        ("explode(l) > 0", "explode"),
        ("k IN (SELECT 1)", "SELECT"),
        ("k = (VALUES (1))", "VALUES"),
        ("EXISTS (WITH a AS (SELECT 1) SELECT * FROM a)", "WITH"),
        ("k = (MAP k USING 'script' AS x FROM t)", "USING"),
        ("k = (map k, v FROM t)", "map"),
        ("k IN (REDUCE DISTINCT k FROM t)", "REDUCE"),
        ("k IN (FROM t)", "FROM"),
        ("k IN (TABLE t)", "TABLE"),
        ("k IN ((SELECT 1))", "SELECT"),
        ("d = current_date", "current_date"),
        ("u = current_user()", "current_user"),
        ("input_file_name() <> ''", "input_file_name"),
        ("from_xml(v, 'a INT') IS NOT NULL", "from_xml"),
        ("aes_encrypt(v, 'k') IS NOT NULL", "aes_encrypt"),
        ("k > 0; DROP TABLE t", ";"),
        ("k = ?", "?"),
        ("k > 0 -- ')'", "--"),
        ("k /* */ > 0", "/*"),
        (r"r'\' || reflect(1) || '\' = v", "reflect"),
        ("monotonically_increasing_id() > k", "monotonically_increasing_id"),
        ("unix_timestamp() > 0", "unix_timestamp"),
        ("uuid() = v", "uuid"),
    ],
)
def test_other_parts_are_refused(text: str, part: str) -> None:
    assert part in list(refused_parts(text))


@pytest.mark.parametrize(
    "text",
    ["current_user()", "CURRENT_DATE", "date_add(now(), 1)", "unix_timestamp()", "parse_json('{}')", "to_json(map('a', user))"],
)
def test_a_default_may_be_a_value_of_the_moment(text: str) -> None:
    assert list(refused_parts(text, is_default=True)) == []


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("uuid()", "uuid"),
        ("rand()", "rand"),
        ("(SELECT current_user())", "SELECT"),
        ("current_user() || reflect('a', 'b')", "reflect"),
        ("db.current_user()", "current_user"),
        ("from_json('{}', 'a INT')", "from_json"),
        ("(MAP 1 USING 'script')", "USING"),
    ],
)
def test_a_default_may_not_be_more(text: str, part: str) -> None:
    assert part in list(refused_parts(text, is_default=True))


@pytest.mark.parametrize("setting", ["spark.sql.parser.escapedStringLiterals", "spark.sql.ansi.doubleQuotedIdentifiers"])
def test_a_setting_with_which_the_text_has_another_meaning_is_refused(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    configuration = {"delta.constraints.c": "regexp_count(v, 'a') > 0"}
    schema = '{"type":"struct","fields":[{"name":"v","type":"string","nullable":true,"metadata":{}}]}'
    config = TableConfig(Protocol(1, 3), Metadata("id", schema, configuration=configuration), "memory://t")
    [check] = constraints_of(config).checks
    monkeypatch.setattr(stored_expressions, "setting_of", lambda _, name: "true" if name == setting else None)
    with pytest.raises(Unsupported, match=setting.rpartition(".")[2]):
        server_rules.server_column(cast("Any", None), config, server_rules.ServerText.of_check(check))
