"""No secret is printed, from any source."""

from __future__ import annotations

import pytest

from tahoe.base.secrets import HIDDEN, is_secret_name, without_secrets


@pytest.mark.parametrize(
    "name",
    ["aws_secret_access_key", "PASSWORD", "session_token", "AZURE_SAS", "account_key", "credential", "sas_key", "private_key_id"],
)
def test_names_of_secrets_are_recognized(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["aws_region", "endpoint", "PATH", "keyboard", "wasser"])
def test_other_names_are_no_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_values_of_options_and_of_the_environment_are_hidden_the_longest_first() -> None:
    words = ["--option=aws_secret_access_key=abc", "token=abcdef", "aws_region=eu-1", "--option"]
    said = "abcdef and abc in eu-1, with hunter22"
    assert without_secrets(said, words, {"MY_PASSWORD": "hunter22"}) == f"{HIDDEN} and {HIDDEN} in eu-1, with {HIDDEN}"


def test_a_short_variable_is_not_hidden() -> None:
    assert without_secrets("a yes b", [], {"TOKEN": "yes"}) == "a yes b"


def test_a_user_in_a_url_is_hidden() -> None:
    assert without_secrets("s3://me:pw@bucket/table", [], {}) == f"s3://{HIDDEN}@bucket/table"
    assert without_secrets("s3://bucket/a@b", [], {}) == "s3://bucket/a@b"
