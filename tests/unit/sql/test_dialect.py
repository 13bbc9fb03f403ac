"""A place in the tokens of a statement."""

from __future__ import annotations

import pytest

from tahoe.sql.dialect import Cursor, SqlSyntaxError, tokenize


def cursor(text: str) -> Cursor:
    return Cursor(text, tokenize(text))


def test_keywords_are_taken_in_any_case_all_or_none_and_never_from_back_ticks() -> None:
    at = cursor("delete FROM `from` t")
    assert not at.take("DELETE", "TABLE") and at.take("DELETE", "FROM")
    assert not at.comes("FROM") and at.identifier() == "from" and at.identifier() == "t"
    assert at.at_end and at.peek().kind == "symbol"


def test_missing_tokens_are_reported_with_their_position() -> None:
    at = cursor("a = )")
    at.next()
    at.need_symbol("=")
    for needs in (lambda: at.need("FROM"), lambda: at.need_symbol("("), at.identifier, at.integer, at.string):
        with pytest.raises(SqlSyntaxError):
            needs()
    assert at.take_symbol(")")
    at.end()


def test_strings_that_follow_each_other_are_one() -> None:
    assert cursor("'a' \"b\" 'it''s'").string() == "abit's"


def test_a_list_has_an_item_at_least() -> None:
    at = cursor("(1, 2, 3) ()")
    assert at.listed(at.integer) == [1, 2, 3]
    with pytest.raises(SqlSyntaxError):
        at.listed(at.integer)


def test_the_users_text_is_cut_where_a_stop_stands_outside_of_brackets() -> None:
    at = cursor("f(a, b) + ',' , c WHERE  x -- the end")
    assert at.slice_until(",", "WHERE") == "f(a, b) + ','"
    at.need_symbol(",")
    assert at.slice_until("WHERE") == "c"
    at.need("WHERE")
    assert at.rest().startswith("x")


def test_only_a_semicolon_may_come_at_the_end() -> None:
    cursor(";").end()
    with pytest.raises(SqlSyntaxError):
        cursor("; x").end()
