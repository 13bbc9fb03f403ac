"""The remedy for a request that was refused goes by status and code."""

from __future__ import annotations

import pytest

from tahoe.store.refusals import remedy_of


@pytest.mark.parametrize(
    ("kind", "begins"),
    [
        ("HTTP status 404 (NoSuchBucket)", "Make the bucket"),
        ("HTTP status 403 (InvalidAccessKeyId)", "Access was denied: the store does not know the access key id"),
        ("HTTP status 400 (ExpiredToken)", "Access was denied: the session token has expired"),
        ("HTTP status 403 (AccessDenied)", "Access was denied, and trying again changes nothing"),
        ("HTTP status 401", "Access was denied, and trying again changes nothing"),
        ("HTTP status 503 (SlowDown)", "Try again"),
        ("timeout", "Try again"),
        ("a text that holds HTTP status 403", "Try again"),
    ],
)
def test_a_remedy_goes_by_status_and_code_alone(kind: str, begins: str) -> None:
    assert remedy_of(kind).startswith(begins)
