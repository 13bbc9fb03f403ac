"""Tokens that admit one namespace, with those below it: to read, and perhaps to write. Pure.

A server with such tokens refuses every request without a token. They are listed in a TOML file, one table ``[[token]]`` for each.
"""

from __future__ import annotations

import hashlib
import hmac
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tahoe.base.exceptions import InvalidRequest
from tahoe.uniform.serve.warehouse import Namespace

_KEYS = {"namespace", "token", "writes"}


@dataclass(frozen=True, slots=True)
class NamespaceToken:
    """A token of a namespace.

    Args:
        digest: of the token, which is not kept itself.
        writes: whether it admits changes.
    """

    namespace: Namespace
    digest: bytes = field(repr=False)
    writes: bool = False

    def admits(self, namespaces: Iterable[Namespace], *, writes: bool) -> bool:
        """Whether it admits a request that concerns these namespaces.

        Args:
            writes: whether the request may change something.
        """
        return (self.writes or not writes) and all(self._contains(namespace) for namespace in namespaces)

    def shows(self, namespace: Namespace) -> bool:
        """Whether a list of namespaces shows this one: it is the token's, below it, or above it."""
        return self._contains(namespace) or namespace == self.namespace[: len(namespace)]

    def _contains(self, namespace: Namespace) -> bool:
        return namespace[: len(self.namespace)] == self.namespace


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a server.

    Args:
        token: admits reading; None as in `tahoe.uniform.serve.rest_protocol.ReadOnlyCatalog`.
        write_token: admits writing, and reading too; None admits writing as `token` does without a token.
        namespace_tokens: admit a namespace each.
    """

    token: str | None = field(default=None, repr=False)
    write_token: str | None = field(default=None, repr=False)
    namespace_tokens: Sequence[NamespaceToken] = ()


NO_TOKENS = Tokens()
"""The tokens of a server that any client on this machine may use."""


def digest(text: str) -> bytes:
    """Return the digest of a token, or of a text that identifies an answer."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def matching(tokens: Sequence[NamespaceToken], sent: str) -> list[NamespaceToken]:
    """Return the tokens that a client sent; each is compared, so that the time does not depend on it."""
    own = digest(sent)
    return [token for token in tokens if hmac.compare_digest(token.digest, own)] if sent else []


def namespace_tokens(text: str, place: str) -> tuple[NamespaceToken, ...]:
    """Read the tokens from a TOML file.

    Args:
        place: the file's name, for messages, which never contain a token.

    Raises `InvalidRequest` (``TAHOE_TOKEN``): the file is no TOML, or an entry is incomplete.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise _invalid(place, "is no TOML file") from None  # the error of the parser might quote a token
    entries = content.get("token")
    if set(content) != {"token"} or not isinstance(entries, list) or not entries:
        raise _invalid(place, "must consist of tables [[token]]")
    return tuple(_token(entry, f"entry {number} of {place}") for number, entry in enumerate(entries, start=1))


def _token(entry: object, place: str) -> NamespaceToken:
    if not isinstance(entry, Mapping) or not {"namespace", "token"} <= set(entry) <= _KEYS:
        raise _invalid(place, "must have the keys namespace and token, and perhaps writes")
    namespace = [entry["namespace"]] if isinstance(entry["namespace"], str) else entry["namespace"]
    if not isinstance(namespace, list) or not namespace or not all(isinstance(level, str) and level for level in namespace):
        raise _invalid(place, "has a namespace that is neither a text nor a list of texts")
    token, writes = entry["token"], entry.get("writes", False)
    if not isinstance(token, str) or not token.strip():
        raise _invalid(place, "has an empty token, or one that is no text")
    if not isinstance(writes, bool):
        raise _invalid(place, "must have true or false for writes")
    return NamespaceToken(tuple(namespace), digest(token), writes)


def _invalid(place: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"The file of tokens (--namespace-tokens): {place} {problem}. Correct it.", code="TAHOE_TOKEN")
