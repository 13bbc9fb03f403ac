"""Manifests rewritten in pieces: what a change does not touch is copied as it is, without being decoded.

A manifest is a sequence of blocks, a block a run of entries. Blocks that need nothing are copied compressed. In the others

* entries that say ADDED are patched to EXISTING, with the sequence numbers that they inherited written out, as the specification demands
  of entries in another manifest;
* entries that say DELETED, and those of removed files, are cut out; only they are decoded.

Entries are found by what they are known to begin with, or to hold: their status and the manifest's own snapshot id, their path and file
format. As each entry holds these once, a search that finds just as many as there are entries has found nothing else; where it finds more,
because some value looks the same, the block is decoded. So the cost of removing a file hardly depends on how many files are in its manifest.
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

__all__ = ["Piece", "blocks_of", "carried", "pieces_of"]

_SOME = b"\2"


class Piece(NamedTuple):
    """A run of entries; `data` is compressed where `packed` says so."""

    entries: int
    data: bytes
    packed: bool


def carried(data: bytes, manifest: ManifestFile, spec: Spec, removed: frozenset[str]) -> tuple[list[Piece], list[Entry]]:
    """The live entries of a manifest, all of them EXISTING, but for those of removed files; and these.

    Args:
        data: the manifest.
        removed: full paths of files; those that are not in it are no error.
    """
    blocks, reader = manifest_blocks(data, manifest, spec)
    added = _counts(_begin(ADDED, manifest), manifest.added_files, blocks)
    deleted = _counts(_begin(DELETED, manifest), manifest.deleted_files, blocks)
    certain = sum(added) == manifest.added_files and sum(deleted) == manifest.deleted_files
    wanted = {url: _path_field(url) for url in removed}
    kept: list[Piece] = []
    gone: list[Entry] = []
    for (count, block, stored), added_here, deleted_here in zip(blocks, added, deleted, strict=True):
        here = [url for url, field in wanted.items() if field in block]
        if certain and not (here or added_here or deleted_here):
            kept.append(Piece(count, stored, packed=True))
            continue
        found = _patched(block, count, added_here, here, reader) if certain else None
        live, body, entries = found or _decoded(block, count, removed, reader)
        gone += entries
        if live:
            kept.append(Piece(live, body, packed=False))
    return kept, gone


def blocks_of(pieces: Iterable[Piece]) -> Iterator[tuple[int, bytes]]:
    """The pieces as blocks of a container file; small ones are joined."""
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
    """Entries as pieces of a block each."""
    rest = iter(entries)
    while run := list(islice(rest, BLOCK_ENTRIES)):
        yield Piece(len(run), b"".join(map(encode_entry, run)), packed=False)


_Rewritten = tuple[int, bytes, list[Entry]]
"""Of a block: how many entries stay, these as EXISTING ones, and the entries of removed files."""


def _decoded(block: bytes, count: int, removed: frozenset[str], reader: EntryReader) -> _Rewritten:
    live = [entry._replace(status=EXISTING) for entry in reader.entries(block, count) if entry.status != DELETED]
    stay = [entry for entry in live if entry.file.url not in removed]
    return len(stay), b"".join(map(encode_entry, stay)), [entry for entry in live if entry.file.url in removed]


def _patched(block: bytes, count: int, added: int, removed: Iterable[str], reader: EntryReader) -> _Rewritten | None:
    """The block without being decoded, where each beginning of an entry is known to be one; None where a path cannot be told for sure.

    Args:
        added: how many of the entries say ADDED.
        removed: paths that are in the block, as it seems.
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


def _counts(wanted: bytes, files: int, blocks: Iterable[tuple[int, bytes, bytes]]) -> list[int]:
    """How often it is in each block; where there are no such `files`, it is not looked for."""
    return [block.count(wanted) if files else 0 for _, block, _ in blocks]


def _begin(status: int, manifest: ManifestFile) -> bytes:
    """What the entries begin with that the manifest's own snapshot has added or deleted."""
    return encode_long(status) + _SOME + encode_long(manifest.added_snapshot_id)


def _path_field(url: str) -> bytes:
    """A data file's content, path and format, which follow each other. No other path ends so, as none contains NUL."""
    return encode_long(0) + encode_string(url) + FORMAT_FIELD


def _as_existing(block: bytes, added: int, manifest: ManifestFile) -> bytes:
    """The block with its ADDED entries, of which there are so many, as EXISTING ones, with both sequence numbers."""
    begin = _begin(ADDED, manifest)
    own = _SOME + encode_long(manifest.sequence_number)
    head = encode_long(EXISTING) + _SOME + encode_long(manifest.added_snapshot_id)
    inherits, explicit = begin + b"\0\0", head + own + own
    replaced = block.replace(inherits, explicit)
    if len(replaced) - len(block) == added * (len(explicit) - len(inherits)):  # all of them, as in format 2
        return replaced
    pattern = re.escape(begin) + rb"(?:\x00|(\x02[\x80-\xff]*[\x00-\x7f]))\x00"
    return re.sub(pattern, lambda found: head + (found[1] or own) + own, block)


_EXISTING_HEAD = re.compile(rb"\x00(?:\x02[\x80-\xff]*[\x00-\x7f]){3}\Z")
"""Status, and three numbers that are there: read from its end it can be read in one way only. `\\Z` is where the search ends."""

_LONGEST_HEAD = 1 + 3 * 11
