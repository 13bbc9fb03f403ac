"""The task of a large conversion: encodes the manifests of a shard of the table's files."""

from __future__ import annotations

from tahoe.uniform.convert.shards import EncodedManifest, Shard, encode_shard


def encoded_shard(order: str, part: Shard) -> list[EncodedManifest]:
    """Return all manifests of a shard. The arguments are those of `tahoe.uniform.convert.shards.encode_shard`."""
    return list(encode_shard(order, part))
