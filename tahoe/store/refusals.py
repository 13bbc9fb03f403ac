"""Remedies for requests that an object store refused, from its status and error code alone: never from its text."""

from __future__ import annotations

import re
from collections.abc import Iterable

NO_BUCKET = {"NoSuchBucket": "bucket", "ContainerNotFound": "container"}
"""The error codes of stores without the bucket, and the store's word for it."""


def names_credentials(scheme: str, names: Iterable[str]) -> bool:
    """Whether options or environment variables contain credentials for a store, or declare that it needs none.

    Args:
        scheme: the scheme of the store's URL.
        names: the names of all options and variables that are set.
    """
    parts = _CREDENTIALS.get(scheme, _OF_AZURE)
    return any(part in name.lower() for name in names for part in parts)


def remedy_of(kind: str, scheme: str = "", *, has_credentials: bool = True) -> str:
    """Return the remedy for a failure such as ``HTTP status 403 (AccessDenied)``.

    Args:
        scheme: the scheme of the store's URL.
        has_credentials: whether options or the environment contain credentials (`names_credentials`).
    """
    status = re.match(r"HTTP status (\d{3})(?: \((\w+)\))?", kind)
    number, code = (int(status[1]), status[2] or "") if status else (0, "")
    if code in NO_BUCKET:
        return f"Create the {NO_BUCKET[code]}, or correct its name."
    if code in _BY_CODE:
        return f"Access was denied: {_BY_CODE[code]}"
    if number in (401, 403) and not has_credentials:
        return (
            "Access was denied, and no credentials were found; a role of this machine, if it has one, lacks the permission. "
            f"{_settings_for(scheme)}"
        )
    if number in (401, 403):
        return (
            "Access was denied, and a retry cannot help. Check which credentials are used (storage_options first, then the "
            "environment), whether they may read, list and write under this path (the user's, the role's and the bucket's policies, "
            "and the key of an encrypted bucket), and the region and the endpoint."
        )
    return next((remedy for reason, remedy in _BY_REASON.items() if kind.endswith(reason)), "Try again when the store answers.")


def without_credentials(scheme: str) -> str:
    """Return problem and remedy for a store without any credentials, on a machine without a role."""
    return f"No credentials found: neither storage_options nor the environment has any, and this machine has no role. {_settings_for(scheme)}"


def _settings_for(scheme: str) -> str:
    variables, options, more = _SETTINGS.get(scheme, _SETTINGS_OF_AZURE)
    return f"Set the environment variables {variables}, or storage_options {options}{more}."


_CREDENTIALS = {
    "s3": ("access_key_id", "container_credentials", "web_identity_token", "skip_signature"),
    "gs": ("service_account", "application_credentials", "bearer_token", "skip_signature"),
}
_OF_AZURE = ("_key", "_token", "client_secret", "client_id", "msi_", "federated", "skip_signature")
_SETTINGS = {
    "s3": (
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (with AWS_SESSION_TOKEN for temporary ones)",
        "aws_access_key_id and aws_secret_access_key, on Spark fs.s3a.access.key and fs.s3a.secret.key; profiles in ~/.aws are not read",
        "; for a public bucket set aws_skip_signature to true",
    ),
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT, the path of a key file", "google_service_account", ""),
}
"""The environment variables, the storage options, and a further remedy."""
_SETTINGS_OF_AZURE = (
    "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY (or AZURE_STORAGE_SAS_TOKEN)",
    "azure_storage_account_name and azure_storage_account_key",
    "",
)
_BY_REASON = {
    "Permission denied": "Give this user the permission to write in the folder, or choose another one.",
    "Read-only file system": "Choose a folder that can be written.",
    "Not a directory": "A part of the path is a file: choose another path.",
    "No space left on device": "Free some space, or choose a folder on another disk.",
}
"""Remedies for failures of the local disk, by the system's words."""
_BY_CODE = {
    "InvalidAccessKeyId": "the store does not know the access key id. Correct it, and check that it belongs to the endpoint.",
    "SignatureDoesNotMatch": "the secret key does not belong to the access key id. Correct it in storage_options or in the environment.",
    "ExpiredToken": "the session token has expired. Get new credentials.",
    "TokenRefreshRequired": "the session token has expired. Get new credentials.",
    "InvalidToken": "the session token does not belong to this store. Get new credentials, or remove the token if the key needs none.",
    "RequestTimeTooSkewed": "this machine's clock differs too much from the store's. Correct it.",
    "AuthorizationHeaderMalformed": "the region is not the bucket's. Correct aws_region.",
}
