"""What a user does about a request that an object store refused, from the store's status and error code alone: never from its text."""

from __future__ import annotations

import re

__all__ = ["remedy_of"]


def remedy_of(kind: str) -> str:
    """The remedy for a failure told as ``HTTP status 403 (AccessDenied)`` and the like."""
    status = re.match(r"HTTP status (\d{3})(?: \((\w+)\))?", kind)
    number, code = (int(status[1]), status[2] or "") if status else (0, "")
    if code == "NoSuchBucket":
        return "Make the bucket, or correct its name."
    if code in _BY_CODE:
        return f"Access was denied: {_BY_CODE[code]}"
    if number in (401, 403):
        return (
            "Access was denied, and trying again changes nothing. Check which credentials are in force (storage_options first, then the "
            "environment), whether they may read, list and write under this path (the user's, the role's and the bucket's policies, "
            "and the key of an encrypted bucket), and the region and the endpoint."
        )
    return "Try again when the store answers."


_BY_CODE = {
    "InvalidAccessKeyId": "the store does not know the access key id. Correct it, and check that the endpoint is the one it belongs to.",
    "SignatureDoesNotMatch": "the secret key does not belong to the access key id. Correct it in storage_options or in the environment.",
    "ExpiredToken": "the session token has expired. Get new credentials.",
    "TokenRefreshRequired": "the session token has expired. Get new credentials.",
    "InvalidToken": "the session token is none of this store. Get new credentials, or drop the token if the key needs none.",
    "RequestTimeTooSkewed": "this machine's clock differs too much from the store's. Set it right.",
    "AuthorizationHeaderMalformed": "the region is not the bucket's. Correct aws_region.",
}
