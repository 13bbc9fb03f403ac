"""Where a table is, and what the paths in its log mean. Pure text: nothing here touches storage.

Three spellings of a place, and which functions speak them:

* a **table URL** is what Hadoop's `Path` prints: a scheme, an authority, and a path that is *not* percent-encoded
  (``file:///data/my table``, ``s3://bucket/my table``). `table_url` makes it; it may be given back to `table_url`.
* a **store name** is relative to the table's root and not encoded (``month=1/part-0.parquet``): `tahoe.store.log_store`.
* a **log path** is what ``add.path`` holds (PROTOCOL, "Add File and Remove File"): a URI as RFC 2396 has it, percent-encoded,
  relative to the table's root or absolute. `encode_path` makes it as Spark would, `decode_path` reads it.

Containment: `decode_path` is the one way from a log path to a store name, and it refuses every path that is not below the
table's root. What it cannot see, symbolic links, `tahoe.store.local_store` looks at when it opens the file. Where data is read, a path
outside of the root may be asked for (`outside`): its name is then a URL, and the store opens it only where the folder of that file says that
the table may (`tahoe.store.outside`).
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, unquote_to_bytes

from tahoe.exceptions import CorruptTable, InvalidRequest, Unsupported

__all__ = [
    "absolute_url",
    "check_name",
    "decode_path",
    "encode_path",
    "is_outside",
    "local_path",
    "named_url",
    "split_url",
    "table_url",
]

MAX_NAME_BYTES = 4096
"""Longer names are refused: no supported store has them (S3: 1,024 bytes, Linux: 4,096)."""


def table_url(path: str | os.PathLike[str]) -> str:
    """The normalised URL of a table: what `LogStore.url` is, and what errors name.

    Args:
        path: a local folder (relative to the working directory or absolute), ``file:/…`` or ``file:///…``, ``s3://bucket/key``
            (also ``s3a``, ``s3n``), ``gs://…``, ``abfss://container@account…``, ``az://…`` or ``memory://name/key``.
            As in Spark the path is taken literally: ``%20`` is three characters, not a space.

    Returns:
        Scheme, authority and path, without a trailing slash and without doubled slashes: ``file:///data/t``, ``s3://bucket/t``.

    Raises:
        InvalidRequest: empty, with NUL, with credentials or a query inside, or without bucket.
        Unsupported: a scheme that no store of Tahoe serves.
    """
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidRequest(
            "The path of a table is a text that is neither empty nor contains NUL: give a folder or a URL.",
            code="TAHOE_TABLE_LOCATION",
        )
    if match := _SCHEME.match(text):
        scheme = _SCHEME_ALIASES.get(match[1].lower(), match[1].lower())
        if scheme == "file":
            return _local_url(_path_of_file_url(text, match.end()))
        if scheme in _OBJECT_SCHEMES:
            return _object_url(scheme, text[match.end() :])
        if text[match.end() :].startswith("/"):
            raise Unsupported(
                f"Tahoe has no store for the scheme '{match[1]}': use a local folder, {', '.join(sorted(_OBJECT_SCHEMES))}.",
                code="TAHOE_TABLE_LOCATION",
                scheme=match[1],
            )
    return _local_url(text)


def split_url(url: str) -> tuple[str, str, str]:
    """Scheme, authority (bucket) and path without a leading slash, of a URL that `table_url` made: ``('s3', 'b', 'k/t')``."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    return scheme, authority, path


def local_path(url: str) -> str | None:
    """The local folder of a ``file:`` table URL, None for other stores."""
    return url.removeprefix("file://") if url.startswith("file:///") else None


def absolute_url(root_url: str, name: str) -> str:
    """The percent-encoded absolute URL of a store name, as Hadoop's `new Path(new URI(…))` reads it.

    ``s3`` becomes ``s3a``, the only S3 scheme that open-source Hadoop serves without configuration.
    """
    scheme, authority, path = split_url(named_url(root_url, name))
    scheme = "s3a" if scheme == "s3" else scheme
    return f"{scheme}://{authority}/{_quote(path)}"


def named_url(root_url: str, name: str) -> str:
    """The URL of a store name, not percent-encoded."""
    return name if is_outside(name) else f"{root_url}/{name}"


def is_outside(name: str) -> bool:
    """Whether a store name is one of a file outside of the table's root, which is a URL: no other name has two slashes together."""
    return "://" in name


def encode_path(name: str) -> str:
    """The log path of a store name, byte for byte as Spark's `Path.toUri` writes it.

    Percent-encoded are: ``%``, space, control characters, and the ASCII characters that RFC 2396 keeps out of a path
    (``"#<>?[\\]^`{|}``); letters outside ASCII stay as they are. A partition folder is escaped by its own rule before, so a
    ``%`` in it is encoded once more here (``p=a%3Ab`` on disk is ``p=a%253Ab`` in the log).
    """
    quoted = _quote(name)
    scheme = _SCHEME.match(quoted)
    return f"{quoted[: scheme.end() - 1]}%3A{quoted[scheme.end() :]}" if scheme else quoted


def decode_path(path: str, root_url: str, *, outside: bool = False) -> str:
    """The store name that a log path means.

    Args:
        path: ``add.path``, ``remove.path``, ``cdc.path``, a sidecar's path or a deletion vector's absolute path.
        root_url: the table's URL, as `table_url` makes it.
        outside: of a file that is to be read: let an absolute path of the same kind of storage be one outside of the table's root.

    Returns:
        The name below the table's root, decoded once; of a file outside of it, its URL.

    Raises:
        CorruptTable: ``TAHOE_PATH_OUTSIDE_TABLE`` where the path leaves the table (``..`` in any encoding, another scheme, bucket
            or folder), ``DELTA_CANNOT_RECONSTRUCT_PATH_FROM_URI`` where it is no path at all (broken escapes, NUL, empty).
    """
    if _PLAIN.fullmatch(path) and len(path) <= MAX_NAME_BYTES:
        return path
    decoded = _decode(path, root_url)
    try:
        return check_name(_relative(decoded, path, root_url), path, root_url)
    except CorruptTable as refusal:
        if not outside or refusal.code != "TAHOE_PATH_OUTSIDE_TABLE":
            raise
        place = _elsewhere(decoded, path, root_url)
        if place is None:
            raise
    return f"{place[0]}{check_name(place[1], path, root_url)}"


def check_name(name: str, path: str, root_url: str) -> str:
    """`name` without empty and ``.`` parts, as Hadoop reads it; refused where it is no name below a table's root.

    Args:
        name: the decoded name.
        path: how the log or the caller spelt it, for the message.
        root_url: the table's URL.
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if any(_climbs(part) for part in parts):
        raise _outside(path, root_url)
    if not parts or name.endswith("/"):
        raise _malformed(path, root_url, "it names no file")
    if "\\" in name or "\0" in name:
        raise _malformed(path, root_url, "it contains a backslash or NUL")
    joined = "/".join(parts)
    try:
        size = len(joined.encode("utf-8"))
    except UnicodeEncodeError:
        raise _malformed(path, root_url, "it is no UTF-8") from None
    if size > MAX_NAME_BYTES:
        raise _malformed(path, root_url, f"it is longer than {MAX_NAME_BYTES:,} bytes")
    return joined


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SCHEME_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_OBJECT_SCHEMES = frozenset({"s3", "gs", "az", "adl", "azure", "abfs", "abfss", "memory"})
_AUTHORITY_WITH_CONTAINER = frozenset({"az", "adl", "azure", "abfs", "abfss"})  # abfss://container@account.dfs.core.windows.net/

# Relative, no escapes, no part that begins with a dot, no doubled slash: what nearly every log holds, told apart in one match.
_PLAIN = re.compile(r"(?:[A-Za-z0-9_=+,@~-][A-Za-z0-9_=+,@~.-]*/)*[A-Za-z0-9_=+,@~-][A-Za-z0-9_=+,@~.-]*")

# java.net.URI's multi-argument constructor, which Hadoop's Path uses: ASCII outside of this set is quoted, so are spaces and
# control characters beyond ASCII; all else stays.
_TO_QUOTE = re.compile(
    r"[^A-Za-z0-9_\-!.~'()*;/:@&=+$,\x80-\U0010ffff]|[\x80-\x9f\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _quote(text: str) -> str:
    return _TO_QUOTE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8")), text)


def _local_url(path: str) -> str:
    absolute = "/" + os.path.abspath(path).strip("/")
    if absolute == "/":
        raise InvalidRequest(
            "The root of the file system cannot be a table: give a folder below it.", code="TAHOE_TABLE_LOCATION"
        )
    return f"file://{absolute}"


def _path_of_file_url(text: str, after_scheme: int) -> str:
    rest = text[after_scheme:]
    if rest.startswith("//") and not rest.startswith("///"):
        raise InvalidRequest("A 'file:' URL names no host: write file:///folder or file:/folder.", code="TAHOE_TABLE_LOCATION")
    if not rest.startswith("/"):
        raise InvalidRequest(
            "A 'file:' URL is absolute: write file:///folder, or the relative folder without 'file:'.",
            code="TAHOE_TABLE_LOCATION",
        )
    return rest


def _object_url(scheme: str, rest: str) -> str:
    if not rest.startswith("//"):
        raise InvalidRequest(f"Write {scheme}://bucket/folder: two slashes must follow '{scheme}:'.", code="TAHOE_TABLE_LOCATION")
    authority, _, path = rest[2:].partition("/")
    user, at, _ = authority.rpartition("@")
    if ":" in user or (at and scheme not in _AUTHORITY_WITH_CONTAINER) or "?" in rest or "#" in rest:
        raise InvalidRequest(
            f"The {scheme} URL carries credentials, a query or a fragment: give credentials through storage_options instead, "
            "for a table's URL is shown in messages.",
            code="TAHOE_TABLE_LOCATION",
        )
    if not authority:
        raise InvalidRequest(f"The URL names no bucket: write {scheme}://bucket/folder.", code="TAHOE_TABLE_LOCATION")
    parts = [part for part in path.split("/") if part]
    if "." in parts or ".." in parts:
        raise InvalidRequest(
            f"The path of a table on {scheme} has no '.' or '..' parts: write it out.", code="TAHOE_TABLE_LOCATION"
        )
    return "/".join([f"{scheme}://{authority}", *parts])


def _decode(path: str, root_url: str) -> str:
    """Percent-escapes replaced once, strictly: what is no UTF-8 has no name."""
    if _BROKEN_ESCAPE.search(path):
        raise _malformed(path, root_url, "it has a '%' that is no escape")
    try:
        return unquote_to_bytes(path).decode("utf-8") if "%" in path else path
    except (UnicodeDecodeError, UnicodeEncodeError):
        raise _malformed(path, root_url, "its escapes are no UTF-8") from None


def _relative(decoded: str, path: str, root_url: str) -> str:
    """The decoded path without the table's root, which an absolute path must begin with."""
    scheme, authority, root = split_url(root_url)
    if match := _SCHEME.match(path):  # on the encoded text: an escaped ':' makes no scheme
        given = match[1].lower()
        rest = decoded[match.end() :]
        if _SCHEME_ALIASES.get(given, given) != scheme:
            raise _outside(path, root_url)
        if rest.startswith("//"):
            given_authority, _, rest = rest[2:].partition("/")
        elif rest.startswith("/") and scheme == "file":
            given_authority, rest = "", rest[1:]
        else:
            raise _outside(path, root_url)
        if given_authority != authority:
            raise _outside(path, root_url)
        return _below(rest, root, path, root_url)
    if decoded.startswith("//"):
        raise _outside(path, root_url)  # a URI without scheme: //host/share
    if (match := _SCHEME.match(decoded)) and decoded[match.end() :].startswith("/"):
        raise _outside(path, root_url)  # file%3A///etc/passwd: a URL for whoever decodes first and parses then
    return _below(decoded[1:], root, path, root_url) if decoded.startswith("/") else decoded


def _elsewhere(decoded: str, path: str, root_url: str) -> tuple[str, str] | None:
    """Scheme and authority of an absolute path of the same kind of storage, and the rest of it; None for any other path."""
    scheme = split_url(root_url)[0]
    match = _SCHEME.match(path)
    if match is None:
        return (f"{scheme}:///", decoded[1:]) if scheme == "file" and re.match("/[^/]", decoded) else None
    given, rest = match[1].lower(), decoded[match.end() :]
    if _SCHEME_ALIASES.get(given, given) != scheme:
        return None
    if scheme == "file":
        return ("file:///", rest.lstrip("/")) if rest.startswith("/") and not re.match("//[^/]", rest) else None
    authority, slash, name = rest[2:].partition("/")
    return (f"{scheme}://{authority}/", name) if rest.startswith("//") and authority and slash else None


def _below(absolute: str, root: str, path: str, root_url: str) -> str:
    parts = [part for part in absolute.split("/") if part not in ("", ".")]
    root_parts = [part for part in root.split("/") if part]
    if parts[: len(root_parts)] != root_parts:
        raise _outside(path, root_url)
    ending = "/" if absolute.endswith("/") else ""
    return "/".join(parts[len(root_parts) :]) + ending


def _climbs(part: str) -> bool:
    """Whether a part is ``..``, or becomes a way upward for someone who decodes it once more.

    Partition folders (``column=value``) are exempt from the second: a value may hold any text, and Spark escapes it so.
    """
    if part == "..":
        return True
    if "%" not in part or "=" in part:
        return False
    for _ in range(4):
        part = unquote(part)
    return any(piece in (".", "..") for piece in re.split(r"[/\\]", part))


def _outside(path: str, root_url: str) -> CorruptTable:
    return CorruptTable(
        f"The log of table '{root_url}' names {_shown(path)}, which is not below the table's root. Tahoe does not follow such a "
        "path, for a hostile log could name any file of this machine with it. If the table is a shallow clone, read its source "
        "or make a full copy of it; if not, restore the log from a backup.",
        code="TAHOE_PATH_OUTSIDE_TABLE",
        table=root_url,
        path=path,
    )


def _malformed(path: str, root_url: str, reason: str) -> CorruptTable:
    return CorruptTable(
        f"The log of table '{root_url}' names {_shown(path)}, which is no path of a file: {reason}. "
        "Restore the log from a backup, or remove the file from the table with the writer that added it.",
        code="DELTA_CANNOT_RECONSTRUCT_PATH_FROM_URI",
        table=root_url,
        path=path,
    )


def _shown(path: str) -> str:
    return repr(path if len(path) <= 200 else path[:200] + "…")
