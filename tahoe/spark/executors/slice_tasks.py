"""The task of a large conversion: encodes the manifests of a slice of the table's files."""

from __future__ import annotations

from tahoe.uniform.convert.slices import Encoded, Slice, encode_slice

__all__ = ["encoded_slice"]


def encoded_slice(order: str, part: Slice) -> list[Encoded]:
    """Return all manifests of a slice. The arguments are those of `tahoe.uniform.convert.slices.encode_slice`."""
    return list(encode_slice(order, part))
