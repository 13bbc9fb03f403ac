"""The remedy for a refused request depends on status and code."""

from __future__ import annotations

import pytest

from tahoe.store.refusals import names_credentials, remedy_of


@pytest.mark.parametrize(
    ("kind", "begins"),
    [
        ("HTTP status 404 (NoSuchBucket)", "Create the bucket"),
        ("HTTP status 404 (ContainerNotFound)", "Create the container"),
        ("HTTP status 403 (InvalidAccessKeyId)", "Access was denied: the store does not know the access key id"),
        ("HTTP status 400 (ExpiredToken)", "Access was denied: the session token has expired"),
        ("HTTP status 403 (AccessDenied)", "Access was denied, and a retry cannot help"),
        ("HTTP status 401", "Access was denied, and a retry cannot help"),
        ("HTTP status 503 (SlowDown)", "Try again"),
        ("timeout", "Try again"),
        ("a text that contains HTTP status 403", "Try again"),
    ],
)
def test_a_remedy_depends_only_on_status_and_code(kind: str, begins: str) -> None:
    assert remedy_of(kind).startswith(begins)


@pytest.mark.parametrize(
    ("scheme", "example", "named"),
    [
        ("s3", "aws_access_key_id", ["AWS_ACCESS_KEY_ID", "access_key_id", "aws_skip_signature", "AWS_WEB_IDENTITY_TOKEN_FILE"]),
        ("gs", "google_service_account", ["GOOGLE_APPLICATION_CREDENTIALS", "service_account_path"]),
        ("az", "azure_storage_account_key", ["AZURE_STORAGE_ACCOUNT_KEY", "sas_token", "AZURE_CLIENT_SECRET"]),
    ],
)
def test_missing_credentials_are_reported(scheme: str, example: str, named: list[str]) -> None:
    assert all(names_credentials(scheme, [name]) for name in named)
    assert not names_credentials(scheme, ["aws_region", "AWS_ENDPOINT", "azure_storage_account_name"])
    remedy = remedy_of("HTTP status 403 (AccessDenied)", scheme, has_credentials=False)
    assert remedy.startswith("Access was denied, and no credentials were found") and example in remedy
    assert "SlowDown" not in remedy_of("HTTP status 503 (SlowDown)", scheme, has_credentials=False)
