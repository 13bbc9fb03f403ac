"""Manifests rewritten in pieces: what a change does not touch is copied as it is, without being decoded.

A manifest is a sequence of blocks, a block a run of entries. To take a few files out of a manifest, only the blocks that hold them are
decoded; blocks whose entries say ADDED are patched to EXISTING, with the sequence numbers that they inherited written out, as the
specification demands of entries in another manifest; all others are copied compressed. So the cost of removing a file hardly depends on
the size of the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tahoe.uniform.avro import BLOCK_ENTRIES, encode_long, encode_string, inflate, pack_block
from tahoe.uniform.manifest_schema import Spec
from tahoe.uniform.manifests import ADDED, DELETED, EXISTING, Entry, ManifestFile, encode_entry, manifest_blocks

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
    blocks, read_block = manifest_blocks(data, manifest, spec)
    identifier = _SOME + encode_long(manifest.added_snapshot_id)
    wanted = [encode_string(url) for url in removed]
    kept: list[Piece] = []
    gone: list[Entry] = []
    added = deleted = 0
    for count, block, stored in blocks:
        added_here = block.count(_status(ADDED) + identifier)
        deleted_here = block.count(_status(DELETED) + identifier)
        added += added_here
        deleted += deleted_here
        if deleted_here or any(url in block for url in wanted):
            live = [entry for entry in read_block(block, count) if entry.status != DELETED]
            stay = [entry for entry in live if entry.file.url not in removed]
            gone += [entry for entry in live if entry.file.url in removed]
            kept.append(_plain(stay))
        elif added_here:
            kept.append(Piece(count, _as_existing(block, manifest, identifier), packed=False))
        else:
            kept.append(Piece(count, stored, packed=True))
    if (added, deleted) != (manifest.added_files, manifest.deleted_files):
        # Something in a value looks like the beginning of an entry: everything is decoded.
        live = [entry for count, block, _ in blocks for entry in read_block(block, count) if entry.status != DELETED]
        gone = [entry for entry in live if entry.file.url in removed]
        kept = [_plain([entry for entry in live if entry.file.url not in removed])]
    return [piece for piece in kept if piece.entries], gone


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
    """Entries as pieces, each encoded by itself."""
    return (Piece(1, encode_entry(entry), packed=False) for entry in entries)


def _plain(entries: list[Entry]) -> Piece:
    return Piece(len(entries), b"".join(encode_entry(entry._replace(status=EXISTING)) for entry in entries), packed=False)


def _status(status: int) -> bytes:
    return encode_long(status)


def _as_existing(block: bytes, manifest: ManifestFile, identifier: bytes) -> bytes:
    """The block with its ADDED entries as EXISTING ones, with both sequence numbers."""
    own = _SOME + encode_long(manifest.sequence_number)
    head = _status(EXISTING) + identifier
    pattern = re.escape(_status(ADDED) + identifier) + rb"(?:\x00|(\x02[\x80-\xff]*[\x00-\x7f]))\x00"
    return re.sub(pattern, lambda found: head + (found[1] or own) + own, block)
