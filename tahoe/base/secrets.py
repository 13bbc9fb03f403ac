"""Redaction of values that must never be printed: options, properties and environment variables whose names indicate a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HIDDEN = "***"


def is_secret_name(name: str) -> bool:
    """Whether this is the name of a password, token, private key or signature."""
    return _SECRET_NAME.search(name) is not None


def shown_value(name: str, value: str) -> str:
    """Return a value as it may be printed: `HIDDEN` for a secret name."""
    return HIDDEN if is_secret_name(name) else value


def shown_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties as they may be printed: the values of secret names are replaced by `HIDDEN`."""
    return {name: shown_value(name, value) for name, value in properties.items()}


def without_secrets(text: str, words: Iterable[str], environment: Mapping[str, str]) -> str:
    """Return the text with every known secret replaced by `HIDDEN`.

    Args:
        words: the command line's words; ``name=value`` and ``--option=name=value`` with a secret name are secrets.
        environment: variables with a secret name are secrets, unless too short to be distinguished from other text.
    """
    pairs = [word.removeprefix("--option=").partition("=")[::2] for word in words]
    secrets = {value for name, value in pairs if value and is_secret_name(name)}
    secrets |= {value for name, value in environment.items() if len(value) >= _SHORTEST and is_secret_name(name)}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _USER_OF_URL.sub(rf"//{HIDDEN}@", text)


_SECRET_NAME = re.compile(
    r"secret|passw|token|credential|signature|\bsas|_sas|private|(access|account|api|encryption)[_.]?key", re.IGNORECASE
)
_USER_OF_URL = re.compile(r"//[^/@\s]+@")
_SHORTEST = 8
