"""Formatting of numbers, times and names for people."""

from __future__ import annotations

import pytest

from tahoe.base.secrets import is_secret_name, without_secrets
from tahoe.cli.shell.text import ago, amount, size, visible


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, ""),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (150 * 2**20, "150 MiB"),
        (2**40, "1.0 TiB"),
    ],
)
def test_bytes_are_shown_in_iec_units(count: int | None, shown: str) -> None:
    assert size(count) == shown


def test_sizes_never_show_four_digits_before_the_point() -> None:
    for exponent in range(10, 60):
        for count in (2**exponent - 1, 2**exponent, 2**exponent + 1):
            assert len(size(count).split()[0]) <= 4, count


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "just now"),
        (30, "30 seconds ago"),
        (60, "1 minute ago"),
        (7200, "2 hours ago"),
        (86_400 * 400, "1 year ago"),
        (-120, "in 2 minutes"),
    ],
)
def test_ages_are_shown_in_one_unit(seconds: int, shown: str) -> None:
    assert ago(1_700_000_000_000 - seconds * 1000, 1_700_000_000_000) == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(None, ""), (1234567, "1,234,567"), ("1234", "1,234"), ("-1000", "-1,000"), ("many", "many")]
)
def test_amounts_have_thousands_separators(count: int | str | None, shown: str) -> None:
    assert amount(count) == shown


def test_control_characters_become_visible() -> None:
    assert visible("a\x1b]0;title\x07b\u202e\n c") == "a\\x1b]0;title\\x07b\\u202e  c"


@pytest.mark.parametrize(
    "name", ["aws_secret_access_key", "AWS_SESSION_TOKEN", "password", "account_key", "sas_token", "AZURE_CLIENT_SECRET"]
)
def test_secret_names_are_recognized(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["region", "endpoint", "delta.appendOnly", "aws_allow_http", "partition_key", "monkey"])
def test_other_names_are_no_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_secrets_of_options_variables_and_urls_are_hidden() -> None:
    words = ["detail", "s3://b/t", "--option", "secret_access_key=abc", "--option=token=t0k", "--option", "region=eu"]
    text = without_secrets(
        "abc and t0k in eu, //me:pw@host, from-env-123", words, {"AWS_SECRET_ACCESS_KEY": "from-env-123", "TOKEN": "eu"}
    )
    assert text == "*** and *** in eu, //***@host, ***"
