from __future__ import annotations

import pytest

from tahoe.sql.table_name import TableName, table_name


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("delta.`/p`", "/p"),
        (" DELTA . `/a``b` ", "/a`b"),
        ("spark_catalog.delta.`/p`", "/p"),
        ("IDENTIFIER('delta.`/p`')", "/p"),
        ("delta.`s3://b/a b`", "s3://b/a b"),
    ],
)
def test_a_table_is_named_by_its_path(text: str, path: str) -> None:
    named = table_name(text)
    assert named == TableName(path) and named.identifiers == ("delta", path)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("t", ("t",)),
        ("db.t", ("db", "t")),
        ("cat.db.`a.b`", ("cat", "db", "a.b")),
        ("delta.p", ("delta", "p")),
        ("delta.`p`.t", ("delta", "p", "t")),
        ("x.delta.`p`", ("x", "delta", "p")),
        ("IDENTIFIER('db.t')", ("db", "t")),
    ],
)
def test_every_other_name_is_one_of_a_catalog(text: str, parts: tuple[str, ...]) -> None:
    named = table_name(text)
    assert named == TableName(None, parts) and named.identifiers == parts
    assert table_name(str(named)) == named


@pytest.mark.parametrize(
    "text", ["", "delta.`/p` x", "a.", ".a", "a b", "'a'", "/a/b", "delta.`/p`.", "IDENTIFIER(t)", "IDENTIFIER('a b')"]
)
def test_a_text_that_is_no_name_names_nothing(text: str) -> None:
    assert table_name(text) is None
