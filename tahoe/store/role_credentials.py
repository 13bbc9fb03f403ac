"""Credentials of the machine's role: whether the service that issues them answers, within `TIMEOUT_SECONDS` and without a retry.

Without credentials in the options or the environment, object_store asks the metadata service of the cloud, again and again if nothing
answers there. A machine outside the cloud has no such service, so the store asks it once, for any answer at all, before the first request.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 2.0
_LINK_LOCAL = "169.254.169.254"
_ENDPOINTS = ("aws_metadata_endpoint", "metadata_endpoint")
_GOOGLE_FILE = Path(".config/gcloud/application_default_credentials.json")


def may_have_role(scheme: str, options: Mapping[str, str]) -> bool:
    """Return whether this machine may have a role with credentials, or Google's default credentials in the user's home.

    Args:
        scheme: the scheme of the store's URL.
        options: the store's options and the environment variables for it.
    """
    if scheme == "gs" and (Path.home() / _GOOGLE_FILE).exists():
        return True
    from http.client import HTTPConnection, HTTPException  # only without credentials

    host, port = _service(scheme, options)
    connection = HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/")
        connection.getresponse()
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    return True


def _service(scheme: str, options: Mapping[str, str]) -> tuple[str, int]:
    """Return host and port of the metadata service."""
    if scheme == "gs":
        return os.environ.get("GCE_METADATA_IP") or os.environ.get("GCE_METADATA_HOST") or _LINK_LOCAL, 80
    named = {name.lower(): value for name, value in options.items()}
    endpoint = next((named[name] for name in _ENDPOINTS if scheme == "s3" and name in named), f"http://{_LINK_LOCAL}")
    url = urlsplit(endpoint)
    return url.hostname or _LINK_LOCAL, url.port or 80
