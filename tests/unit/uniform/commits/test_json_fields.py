"""Fields of requests: each is read with its type, and an error names it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.uniform.commits.json_fields import Fields

FIELDS = Fields.of(
    {"text": "a", "number": 2**63 - 1, "flag": True, "texts": ["a"], "numbers": [1], "inner": {"deep": 1}, "each": [{"a": 1}]},
    "body",
)


def test_fields_are_read_with_their_types() -> None:
    assert (FIELDS.text("text"), FIELDS.number("number"), FIELDS.optional("flag", bool)) == ("a", 2**63 - 1, True)
    assert (FIELDS.texts("texts"), FIELDS.numbers("numbers")) == (("a",), (1,))
    assert FIELDS.inner("inner").number("deep") == FIELDS.each("each")[0].number("a") == 1
    assert (FIELDS.optional("missing", int), FIELDS.each("missing"), FIELDS.properties("missing")) == (None, [], {})


@pytest.mark.parametrize(
    ("read", "named"),
    [
        (lambda: FIELDS.text("number"), "'body.number' of the request must be a text"),
        (lambda: FIELDS.text("missing"), "'body.missing' is missing"),
        (lambda: FIELDS.number("flag"), "'body.flag' of the request must be a whole number"),
        (lambda: FIELDS.optional("number", bool), "'body.number' of the request must be true or false"),
        (lambda: FIELDS.texts("numbers"), "'body.numbers' of the request must be a list of texts"),
        (lambda: FIELDS.numbers("texts"), "'body.texts' of the request must be a list of whole numbers"),
        (lambda: FIELDS.properties("inner"), "'body.inner.deep' of the request must be a text"),
        (lambda: FIELDS.inner("inner").text("deep"), "'body.inner.deep' of the request must be a text"),
        (lambda: FIELDS.each("texts"), r"'body.texts\[0\]' of the request must be an object"),
        (lambda: Fields.of([], "body"), "'body' of the request must be an object"),
        (lambda: Fields({"n": 2**63}).number("n"), "'n' of the request must be a whole number of 64 bits"),
    ],
)
def test_an_error_names_the_field(read: Callable[[], object], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        read()
