"""Table locations, and the paths in a log. Pure text: nothing here accesses storage.

There are four forms of a location, each with its functions:

* a **table URL** is the form that Hadoop's `Path` prints: a scheme, an authority, and a path that is *not* percent-encoded
  (``file:///data/my table``, ``s3://bucket/my table``). `table_url` returns it, and accepts it again.
* a **store name** is relative to the table's root and not encoded (``month=1/part-0.parquet``): `tahoe.store.log_store`.
* a **log path** is the value of ``add.path`` (PROTOCOL, "Add File and Remove File"): a URI by RFC 2396, percent-encoded,
  relative to the table's root or absolute. `encode_path` encodes it as Spark does, `decode_path` decodes it.
* a **location** in Iceberg metadata is an absolute URL or path that is not percent-encoded: `name_below`.

Containment: `decode_path` is the only way from a log path to a store name, and it refuses every path that is not below the
table's root. It cannot see symbolic links; `tahoe.store.local_store` checks them when it opens the file. Readers of data may allow a path
outside of the root (`outside`): its name is then a URL, and the store opens it only if the folder of that file permits the table
(`tahoe.store.outside`).
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, unquote_to_bytes

from tahoe.base.exceptions import CorruptTable, InvalidRequest, Unsupported

MAX_NAME_BYTES = 4096
"""Longer names are refused: no supported store allows them (S3: 1,024 bytes, Linux: 4,096)."""

HADOOP_SCHEMES = frozenset({"hdfs", "viewfs"})
"""The schemes of file systems that Tahoe reaches through the JVM of a Spark session: `tahoe.store.hadoop_store`."""

_LOCATION = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(/.*)")
_ALIKE = {"s3a": "s3", "s3n": "s3", "abfss": "abfs"}


def table_url(path: str | os.PathLike[str]) -> str:
    """Return the normalized URL of a table, as in `LogStore.url` and in errors.

    Args:
        path: a local folder (relative to the working directory or absolute), ``file:/…`` or ``file:///…``, ``s3://bucket/key``
            (also ``s3a``, ``s3n``), ``gs://…``, ``abfss://container@account…``, ``az://…``, ``hdfs://host:port/…``, ``viewfs://…`` or
            ``memory://name/key``.
            ``~/`` is the user's home folder. As in Spark the path is otherwise taken literally: ``%20`` is three characters, not a space.

    Returns:
        Scheme, authority and path, without a trailing slash and without doubled slashes: ``file:///data/t``, ``s3://bucket/t``.

    Raises:
        InvalidRequest: empty, with NUL, with credentials or a query inside, or without bucket.
        Unsupported: a scheme without a store in Tahoe.
    """
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidRequest(
            "The path of a table is a text that is neither empty nor contains NUL: pass a folder or a URL.",
            code="TAHOE_TABLE_LOCATION",
        )
    if text == "~" or text.startswith("~/"):
        text = os.path.expanduser(text)
    if match := _SCHEME.match(text):
        scheme = _SCHEME_ALIASES.get(match[1].lower(), match[1].lower())
        if scheme == "file":
            return _local_url(_path_of_file_url(text, match.end()))
        if scheme in _OBJECT_SCHEMES or scheme in HADOOP_SCHEMES:
            return _object_url(scheme, text[match.end() :])
        if text[match.end() :].startswith("/"):
            raise Unsupported(
                f"Tahoe has no store for the scheme '{match[1]}': use a local folder, "
                f"{', '.join(sorted(_OBJECT_SCHEMES | HADOOP_SCHEMES))}.",
                code="TAHOE_TABLE_LOCATION",
                scheme=match[1],
            )
    return _local_url(text)


def split_url(url: str) -> tuple[str, str, str]:
    """Split a URL from `table_url` into scheme, authority (bucket) and path without a leading slash: ``('s3', 'b', 'k/t')``."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    return scheme, authority, path


def needs_jvm(url: str) -> bool:
    """Whether only a process with a Spark session's JVM can open the table, and Python on Spark's executors cannot."""
    return split_url(url)[0] in HADOOP_SCHEMES


def local_path(url: str) -> str | None:
    """Return the local folder of a ``file:`` table URL, None for other stores."""
    return url.removeprefix("file://") if url.startswith("file:///") else None


def absolute_url(root_url: str, name: str) -> str:
    """Return the percent-encoded absolute URL of a store name, as Hadoop's `new Path(new URI(…))` reads it.

    ``s3`` becomes ``s3a``, the only S3 scheme that open-source Hadoop supports without configuration.
    """
    scheme, authority, path = split_url(named_url(root_url, name))
    scheme = "s3a" if scheme == "s3" else scheme
    return f"{scheme}://{authority}/{_quote(path)}"


def named_url(root_url: str, name: str) -> str:
    """Return the URL of a store name, not percent-encoded."""
    return name if is_outside(name) else f"{root_url}/{name}"


def is_outside(name: str) -> bool:
    """Whether a store name is the URL of a file outside of the table's root: no other name has two adjacent slashes."""
    return "://" in name


def refuse_outside_name(name: str, root_url: str) -> None:
    """Raise `InvalidRequest` for a text that is not a store name below the root: empty, absolute, a URL, or with ``..`` or NUL."""
    if not name or name[0] == "/" or "\0" in name or is_outside(name) or (".." in name and ".." in name.split("/")):
        raise InvalidRequest(
            f"'{name}' is not a name below the root of table '{root_url}'.",
            code="TAHOE_PATH_OUTSIDE_TABLE",
            table=root_url,
            path=name,
        )


def encode_path(name: str) -> str:
    """Encode a store name as a log path, byte for byte as Spark's `Path.toUri` does.

    Percent-encoded are: ``%``, space, control characters, and the ASCII characters that RFC 2396 excludes from paths
    (``"#<>?[\\]^`{|}``); non-ASCII letters stay as they are. A partition folder is already escaped by its own rule, so a
    ``%`` in it is encoded again here (``p=a%3Ab`` on disk is ``p=a%253Ab`` in the log).
    """
    quoted = _quote(name)
    scheme = _SCHEME.match(quoted)
    return f"{quoted[: scheme.end() - 1]}%3A{quoted[scheme.end() :]}" if scheme else quoted


def decode_path(path: str, root_url: str, *, outside: bool = False) -> str:
    """Decode a log path to a store name.

    Args:
        path: ``add.path``, ``remove.path``, ``cdc.path``, a sidecar's path or a deletion vector's absolute path.
        root_url: the table's URL, from `table_url`.
        outside: for a file to be read: allow an absolute path outside of the table's root, in the same kind of storage.

    Returns:
        The name below the table's root, decoded once; for a file outside of it, its URL.

    Raises:
        CorruptTable: ``TAHOE_PATH_OUTSIDE_TABLE`` if the path leaves the table (``..`` in any encoding, another scheme, bucket
            or folder), ``DELTA_CANNOT_RECONSTRUCT_PATH_FROM_URI`` if it is not a path (broken escapes, NUL, empty).
    """
    if _PLAIN.fullmatch(path) and len(path) <= MAX_NAME_BYTES:
        return path
    decoded = _decode(path, root_url)
    try:
        return check_name(_relative(decoded, path, root_url), path, root_url)
    except CorruptTable as refusal:
        if not outside or refusal.code != "TAHOE_PATH_OUTSIDE_TABLE":
            raise
        target = _outside_root(decoded, path, root_url)
        if target is None:
            raise
    return f"{target[0]}{check_name(target[1], path, root_url)}"


def check_name(name: str, path: str, root_url: str) -> str:
    """Return `name` without empty and ``.`` parts, as Hadoop reads it. Raises if it is not a name below a table's root.

    Args:
        name: the decoded name.
        path: the spelling in the log or by the caller, for the message.
        root_url: the table's URL.
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if any(_is_parent_reference(part) for part in parts):
        raise _outside(path, root_url)
    if not parts or name.endswith("/"):
        raise _malformed(path, root_url, "it does not name a file")
    if "\\" in name or "\0" in name:
        raise _malformed(path, root_url, "it contains a backslash or NUL")
    joined = "/".join(parts)
    try:
        size = len(joined.encode("utf-8"))
    except UnicodeEncodeError:
        raise _malformed(path, root_url, "it is not valid UTF-8") from None
    if size > MAX_NAME_BYTES:
        raise _malformed(path, root_url, f"it is longer than {MAX_NAME_BYTES:,} bytes")
    return joined


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SCHEME_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_OBJECT_SCHEMES = frozenset({"s3", "gs", "az", "adl", "azure", "abfs", "abfss", "memory"})
_AUTHORITY_WITH_CONTAINER = frozenset({"az", "adl", "azure", "abfs", "abfss"})  # abfss://container@account.dfs.core.windows.net/

# Relative, no escapes, no part that begins with a dot, no doubled slash: nearly every path in a log, recognized in one match.
_PLAIN = re.compile(r"(?:[A-Za-z0-9_=+,@~-][A-Za-z0-9_=+,@~.-]*/)*[A-Za-z0-9_=+,@~-][A-Za-z0-9_=+,@~.-]*")

# java.net.URI's multi-argument constructor, which Hadoop's Path uses, quotes ASCII outside of this set, and spaces and
# control characters beyond ASCII; everything else stays.
_TO_QUOTE = re.compile(
    r"[^A-Za-z0-9_\-!.~'()*;/:@&=+$,\x80-\U0010ffff]|[\x80-\x9f\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def name_below(root_url: str, location: str) -> str | None:
    """Return the store name of a location, which writers spell as ``file:///a/b``, ``file:/a/b``, ``/a/b`` or with ``s3a``; None if it is
    not below the root. Locations are not percent-encoded (Iceberg's specification has no such rule)."""
    root, target = _location_parts(root_url), _location_parts(location)
    if root is None or target is None or root[:2] != target[:2] or not target[2].startswith(f"{root[2]}/"):
        return None
    name = target[2][len(root[2]) + 1 :]
    return None if any(part in ("", ".", "..") for part in name.split("/")) else name


def _location_parts(location: str) -> tuple[str, str, str] | None:
    match = _LOCATION.fullmatch(location)
    if match is None:
        return None
    scheme = (match[1] or "file").lower()
    return _ALIKE.get(scheme, scheme), match[2] or "", match[3].rstrip("/")


def _quote(text: str) -> str:
    return _TO_QUOTE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8")), text)


def _local_url(path: str) -> str:
    absolute = "/" + os.path.abspath(path).strip("/")
    if absolute == "/":
        raise InvalidRequest(
            "The root of the file system cannot be a table: pass a folder below it.", code="TAHOE_TABLE_LOCATION"
        )
    return f"file://{absolute}"


def _path_of_file_url(text: str, after_scheme: int) -> str:
    rest = text[after_scheme:]
    if rest.startswith("//") and not rest.startswith("///"):
        raise InvalidRequest("A 'file:' URL has no host: write file:///folder or file:/folder.", code="TAHOE_TABLE_LOCATION")
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
            f"The {scheme} URL carries credentials, a query or a fragment: pass credentials through storage_options instead, "
            "since a table's URL appears in messages.",
            code="TAHOE_TABLE_LOCATION",
        )
    if not authority:
        first = "host:port" if scheme in HADOOP_SCHEMES else "bucket"
        raise InvalidRequest(
            f"The URL has no {first.partition(':')[0]}: write {scheme}://{first}/folder.", code="TAHOE_TABLE_LOCATION"
        )
    parts = [part for part in path.split("/") if part]
    if "." in parts or ".." in parts:
        raise InvalidRequest(
            f"The path of a table on {scheme} has no '.' or '..' parts: write it out.", code="TAHOE_TABLE_LOCATION"
        )
    return "/".join([f"{scheme}://{authority}", *parts])


def _decode(path: str, root_url: str) -> str:
    """Decode percent-escapes once, strictly: invalid UTF-8 raises."""
    if _BROKEN_ESCAPE.search(path):
        raise _malformed(path, root_url, "it has a '%' that does not start an escape")
    try:
        return unquote_to_bytes(path).decode("utf-8") if "%" in path else path
    except (UnicodeDecodeError, UnicodeEncodeError):
        raise _malformed(path, root_url, "its escapes are not valid UTF-8") from None


def _relative(decoded: str, path: str, root_url: str) -> str:
    """Return the decoded path without the table's root, with which an absolute path must begin."""
    scheme, authority, root = split_url(root_url)
    if match := _SCHEME.match(path):  # on the encoded text: an escaped ':' makes no scheme
        path_scheme = match[1].lower()
        rest = decoded[match.end() :]
        if _SCHEME_ALIASES.get(path_scheme, path_scheme) != scheme:
            raise _outside(path, root_url)
        if rest.startswith("//"):
            path_authority, _, rest = rest[2:].partition("/")
        elif rest.startswith("/") and scheme == "file":
            path_authority, rest = "", rest[1:]
        else:
            raise _outside(path, root_url)
        if path_authority != authority:
            raise _outside(path, root_url)
        return _below(rest, root, path, root_url)
    if decoded.startswith("//"):
        raise _outside(path, root_url)  # a URI without scheme: //host/share
    if (match := _SCHEME.match(decoded)) and decoded[match.end() :].startswith("/"):
        raise _outside(path, root_url)  # file%3A///etc/passwd: a URL for code that decodes before it parses
    return _below(decoded[1:], root, path, root_url) if decoded.startswith("/") else decoded


def _outside_root(decoded: str, path: str, root_url: str) -> tuple[str, str] | None:
    """Split an absolute path in the same kind of storage into scheme and authority, and the rest; None for any other path."""
    scheme = split_url(root_url)[0]
    match = _SCHEME.match(path)
    if match is None:
        return (f"{scheme}:///", decoded[1:]) if scheme == "file" and re.match("/[^/]", decoded) else None
    path_scheme, rest = match[1].lower(), decoded[match.end() :]
    if _SCHEME_ALIASES.get(path_scheme, path_scheme) != scheme:
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


def _is_parent_reference(part: str) -> bool:
    """Whether a part is ``..``, or becomes a parent reference if decoded again.

    Partition folders (``column=value``) are exempt from the second rule: a value may be any text, and Spark escapes it like this.
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
        "path, since a hostile log could name any file of this machine. If the table is a shallow clone, read its source "
        "or make a full copy of it; if not, restore the log from a backup.",
        code="TAHOE_PATH_OUTSIDE_TABLE",
        table=root_url,
        path=path,
    )


def _malformed(path: str, root_url: str, reason: str) -> CorruptTable:
    return CorruptTable(
        f"The log of table '{root_url}' names {_shown(path)}, which is not the path of a file: {reason}. "
        "Restore the log from a backup, or remove the file from the table with the writer that added it.",
        code="DELTA_CANNOT_RECONSTRUCT_PATH_FROM_URI",
        table=root_url,
        path=path,
    )


def _shown(path: str) -> str:
    return repr(path if len(path) <= 200 else path[:200] + "…")
