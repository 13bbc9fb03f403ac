"""GENERATE symlink_format_manifest: lists of the live files of each partition for readers without Delta support (Presto, Athena, Hive).

``_symlink_format_manifest/p=1/manifest`` has one absolute path per line. Each manifest is written atomically. An interrupted run may leave
old manifests beside new ones, but no partial one; the next run rewrites all. These readers support no deletion vectors or column mapping.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.base.html import ShownAsText
from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent
from tahoe.log.files.live_files import canonical_path
from tahoe.protocol.actions import Action, AddFile, RemoveFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.partition import deserialize, hive_folder
from tahoe.schema.types import PrimitiveType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import named_url

MANIFEST_MODE = "symlink_format_manifest"
_FOLDER = "_symlink_format_manifest"
_THREADS = 16


@dataclass(frozen=True, slots=True)
class Generated(ShownAsText):
    """The result of a GENERATE or of its dry run; `str` gives a readable summary.

    Args:
        table: the URL of the table.
        version: the table version whose files are listed.
        written: the names of the written manifests.
        deleted: the names of the deleted manifests, of partitions without files.
        files: the number of listed files.
    """

    table: str
    version: int
    written: tuple[str, ...]
    deleted: tuple[str, ...]
    files: int
    dry_run: bool = False

    def __str__(self) -> str:
        would = "would list" if self.dry_run else "lists"
        text = f"GENERATE {MANIFEST_MODE} {would} {self.files:,} files of version {self.version} of {self.table}"
        text += f" in {len(self.written):,} manifests"
        return f"{text}; {len(self.deleted):,} others {'would go' if self.dry_run else 'are gone'}."


def generate(snapshot: Snapshot, mode: str = MANIFEST_MODE, progress: Progress = silent, *, dry_run: bool = False) -> Generated:
    """Write the manifests of a version, and delete those of partitions without files.

    Args:
        mode: only `MANIFEST_MODE` is supported.
        progress: called after each manifest.

    Raises:
        InvalidRequest: ``DELTA_MODE_NOT_SUPPORTED``.
        Unsupported: ``DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS``: readers of manifests would return the deleted rows;
            ``DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING``.
    """
    if mode.lower() != MANIFEST_MODE:
        raise InvalidRequest(
            f"Specified mode '{mode}' is not supported. Supported modes are: {MANIFEST_MODE}.", code="DELTA_MODE_NOT_SUPPORTED"
        )
    _refuse_what_readers_miss(snapshot)
    store, files = snapshot.store, snapshot.files()
    manifests = _manifests(snapshot.config, files, store.url)
    there = {entry.name for entry in store.walk(_FOLDER)}
    gone = tuple(sorted(there - manifests.keys()))
    if not dry_run:
        _write(snapshot, manifests, gone, progress)
    return Generated(store.url, snapshot.version, tuple(sorted(manifests)), gone, files.num_rows, dry_run)


def generate_after_commit(snapshot: Snapshot, actions: Iterable[Action]) -> None:
    """Write the manifests of the partitions that a commit changed, or all if there are none yet. Raises the errors of `generate`.

    Args:
        snapshot: the newest version, which may include later commits of other writers.
        actions: the actions of the commit.
    """
    store, changed = snapshot.store, [action for action in actions if isinstance(action, AddFile | RemoveFile)]
    has_values = all(action.partition_values is not None for action in changed)
    if not snapshot.partition_columns or not has_values or next(iter(store.walk(_FOLDER)), None) is None:
        generate(snapshot)
        return
    _refuse_what_readers_miss(snapshot)
    touched = {_name(snapshot.config, action.partition_values or {}) for action in changed}
    manifests = _manifests(snapshot.config, snapshot.files(), store.url, touched)
    _write(snapshot, manifests, touched - manifests.keys(), silent)


def _refuse_what_readers_miss(snapshot: Snapshot) -> None:
    url = snapshot.store.url
    if snapshot.config.column_mapping_mode != "none":
        raise Unsupported(
            f"Manifest generation is not supported for tables that leverage column mapping, as external readers cannot read these Delta "
            f"tables: {url}. Let such readers have its Iceberg side (delta.universalFormat.enabledFormats = iceberg).",
            code="DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
            table=url,
        )
    if pc.any(pc.is_valid(snapshot.files()["deletionVector"])).as_py():
        raise Unsupported(
            f"The GENERATE {MANIFEST_MODE} command is not supported on table versions with deletion vectors: table {url}. In order to "
            "produce a version of the table without deletion vectors, run REORG TABLE … APPLY (PURGE) first (Table.purge).",
            code="DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS",
            table=url,
        )


def _manifests(config: TableConfig, files: pa.Table, url: str, folders: Collection[str] | None = None) -> dict[str, list[str]]:
    """Return the files of each manifest, by its name. A table without partitions has a manifest even if it has no files."""
    manifests: dict[str, list[str]] = {} if config.partition_columns else {f"{_FOLDER}/manifest": []}
    names: dict[tuple[tuple[str, str | None], ...], str] = {}
    for path, values in zip(files["path"].to_pylist(), files["partitionValues"].to_pylist(), strict=True):
        key = tuple(values or ())
        name = names.get(key) or names.setdefault(key, _name(config, dict(key)))
        if folders is None or name in folders:
            manifests.setdefault(name, []).append(_display_url(named_url(url, canonical_path(path, url))))
    return {name: sorted(paths) for name, paths in manifests.items()}


def _name(config: TableConfig, values: Mapping[str, str | None]) -> str:
    texts = {}
    for column in config.partition_schema:
        text = values.get(column.name)
        texts[column.name] = _as_spark(text) if text and column.data_type == PrimitiveType("timestamp") else text
    return "/".join(filter(None, [_FOLDER, hive_folder(list(texts), texts), "manifest"]))


def _as_spark(text: str) -> str:
    """Format an instant as Spark casts it to a string, in UTC."""
    timestamp = deserialize(text, PrimitiveType("timestamp"))
    return (
        re.sub(r"\.?0*$", "", f"{timestamp:%Y-%m-%d %H:%M:%S.%f}") if timestamp.microsecond else f"{timestamp:%Y-%m-%d %H:%M:%S}"
    )


def _display_url(url: str) -> str:
    """Return the URL as Hadoop writes it, with one slash after ``file:``."""
    return f"file:{url[7:]}" if url.startswith("file:///") else url


def _write(snapshot: Snapshot, manifests: Mapping[str, list[str]], gone: Iterable[str], progress: Progress) -> None:
    store = snapshot.store

    def put(name: str) -> None:
        store.put(name, "".join(f"{path}\n" for path in manifests[name]).encode())

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="tahoe-manifests") as pool:
        for done, _ in enumerate(pool.map(put, manifests), start=1):
            progress("manifests written", done, len(manifests))
        list(pool.map(store.delete, gone))
