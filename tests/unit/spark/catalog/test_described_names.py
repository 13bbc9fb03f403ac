"""The text of a table's name and entry, which Java creates, is parsed to the name as the user wrote it."""

from __future__ import annotations

import pytest

from tahoe.spark.catalog.described_names import DescribedName


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3\1file:/data/t\1db\0t", DescribedName(("db", "t"), 3, "file:/data/t")),
        ("3\1file:/data/a%20b\1db\0t", DescribedName(("db", "t"), 3, "file:/data/a b")),
        ("0\1\1db\0t", DescribedName(("db", "t"), None, "")),
        ("0\1\1a\1b", DescribedName(("a\1b",), None, "")),
    ],
    ids=["entry", "escaped location", "no entry", "separator in the name"],
)
def test_text_of_java_is_parsed(text: str, expected: DescribedName) -> None:
    assert DescribedName.of(text) == expected
