"""Manifests rewritten in pieces: unaffected parts are copied without being decoded.

A manifest is a sequence of blocks, and a block is a run of entries. Unaffected blocks are copied compressed. In the others,
* entries with status ADDED are patched to EXISTING, with their inherited sequence numbers written out, as the specification requires
  of entries carried into another manifest;
* entries with status DELETED, and entries of removed files, are cut out; only they are decoded.

Entries are located by searching for known bytes: their status and the manifest's own snapshot id, or their path and file format. Each
entry contains these once, so a search with exactly as many matches as entries is exact. If it has more matches, because another value
looks the same, the block is decoded. So the cost of removing a file hardly depends on the number of files in its manifest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from tahoe.uniform.formats.avro import BLOCK_ENTRIES, encode_long, encode_string, inflate, pack_block
from tahoe.uniform.formats.manifest_schema import Spec
from tahoe.uniform.formats.manifests import (
    ADDED,
    DELETED,
    EXISTING,
    FORMAT_FIELD,
    Entry,
    EntryReader,
    ManifestFile,
    encode_entry,
    manifest_blocks,
)

_SOME = b"\2"


class Piece(NamedTuple):
    """A run of entries; `data` is compressed if `packed` is set."""

    entries: int
    data: bytes
    packed: bool


def carried(data: bytes, manifest: ManifestFile, spec: Spec, removed: frozenset[str]) -> tuple[list[Piece], list[Entry]]:
    """Return the live entries of a manifest, all as EXISTING, without removed files; and the entries of removed files.

    Args:
        data: the manifest.
        removed: full paths of files; missing files are not an error.
    """
    blocks, reader = manifest_blocks(data, manifest, spec)
    added = _counts(_begin(ADDED, manifest), manifest.added_files, blocks)
    deleted = _counts(_begin(DELETED, manifest), manifest.deleted_files, blocks)
    certain = sum(added) == manifest.added_files and sum(deleted) == manifest.deleted_files
    fields = {url: _path_field(url) for url in removed}
    pieces: list[Piece] = []
    gone: list[Entry] = []
    for (count, block, stored), added_here, deleted_here in zip(blocks, added, deleted, strict=True):
        here = [url for url, field in fields.items() if field in block]
        if certain and not (here or added_here or deleted_here):
            pieces.append(Piece(count, stored, packed=True))
            continue
        rewritten = _patched(block, count, added_here, here, reader) if certain else None
        live, body, entries = rewritten or _decoded(block, count, removed, reader)
        gone += entries
        if live:
            pieces.append(Piece(live, body, packed=False))
    return pieces, gone


def blocks_of(pieces: Iterable[Piece]) -> Iterator[tuple[int, bytes]]:
    """Yield the pieces as blocks of a container file; small pieces are joined."""
    waiting: list[bytes] = []
    count = 0
    for piece in pieces:
        if piece.packed and piece.entries >= BLOCK_ENTRIES // 2:
            yield piece.entries, piece.data
            continue
        waiting.append(inflate(piece.data) if piece.packed else piece.data)
        count += piece.entries
        if count >= BLOCK_ENTRIES:
            yield count, pack_block(waiting)
            waiting, count = [], 0
    if count:
        yield count, pack_block(waiting)


def pieces_of(entries: Iterable[Entry]) -> Iterator[Piece]:
    """Yield entries as pieces of one block each."""
    rest = iter(entries)
    while run := list(islice(rest, BLOCK_ENTRIES)):
        yield Piece(len(run), b"".join(map(encode_entry, run)), packed=False)


_Rewritten = tuple[int, bytes, list[Entry]]
"""A rewritten block: the number of remaining entries, these as EXISTING, and the entries of removed files."""


def _decoded(block: bytes, count: int, removed: frozenset[str], reader: EntryReader) -> _Rewritten:
    live = [entry._replace(status=EXISTING) for entry in reader.entries(block, count) if entry.status != DELETED]
    stay = [entry for entry in live if entry.file.url not in removed]
    return len(stay), b"".join(map(encode_entry, stay)), [entry for entry in live if entry.file.url in removed]


def _patched(block: bytes, count: int, added: int, removed: Iterable[str], reader: EntryReader) -> _Rewritten | None:
    """Rewrite a block without decoding it, if the search for entries is exact; None if a path cannot be located for certain.

    Args:
        added: the number of entries with status ADDED.
        removed: paths that appear to be in the block.
    """
    if removed and block.count(FORMAT_FIELD) != count:
        return None
    body = block
    begin = _begin(DELETED, reader.manifest)
    while reader.manifest.deleted_files and (start := body.find(begin)) >= 0:
        _, end = reader.entry(body, start)
        body = body[:start] + body[end:]
        count -= 1
    if added:
        body = _as_existing(body, added, reader.manifest)
    gone: list[Entry] = []
    for field in sorted(map(_path_field, removed), key=body.find):  # in the order of the entries, in every process
        while (position := body.find(field)) >= 0:
            head = _EXISTING_HEAD.search(body, max(0, position - _LONGEST_HEAD), position)
            if head is None:
                return None
            entry, end = reader.entry(body, head.start())
            body = body[: head.start()] + body[end:]
            count -= 1
            gone.append(entry)
    return count, body, gone


def _counts(prefix: bytes, files: int, blocks: Iterable[tuple[int, bytes, bytes]]) -> list[int]:
    """Count the occurrences of a prefix in each block; without searching if there are no such `files`."""
    return [block.count(prefix) if files else 0 for _, block, _ in blocks]


def _begin(status: int, manifest: ManifestFile) -> bytes:
    """Return the prefix of entries that the manifest's own snapshot has added or deleted."""
    return encode_long(status) + _SOME + encode_long(manifest.added_snapshot_id)


def _path_field(url: str) -> bytes:
    """Return a data file's content, path and format, which are adjacent. No other path ends like this, as no path contains NUL."""
    return encode_long(0) + encode_string(url) + FORMAT_FIELD


def _as_existing(block: bytes, added: int, manifest: ManifestFile) -> bytes:
    """Return the block with its ADDED entries, which number `added`, as EXISTING entries with both sequence numbers."""
    begin = _begin(ADDED, manifest)
    sequence = _SOME + encode_long(manifest.sequence_number)
    head = encode_long(EXISTING) + _SOME + encode_long(manifest.added_snapshot_id)
    inherits, explicit = begin + b"\0\0", head + sequence + sequence
    replaced = block.replace(inherits, explicit)
    if len(replaced) - len(block) == added * (len(explicit) - len(inherits)):  # all of them, as is usual in format 2
        return replaced
    pattern = re.escape(begin) + rb"(?:\x00|(\x02[\x80-\xff]*[\x00-\x7f]))\x00"
    return re.sub(pattern, lambda matched: head + (matched[1] or sequence) + sequence, block)


_EXISTING_HEAD = re.compile(rb"\x00(?:\x02[\x80-\xff]*[\x00-\x7f]){3}\Z")
"""Status and three non-null numbers: parsed from the end, it is unambiguous. `\\Z` is the end of the search range."""

_LONGEST_HEAD = 1 + 3 * 11
