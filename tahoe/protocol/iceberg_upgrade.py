"""What making a table readable as Iceberg takes: a value, told by those who do it to those who ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Upgrade"]


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What an upgrade did, or would do.

    Args:
        compat_version: of IcebergCompat.
        version: the table's version afterwards; in a dry run, the one that was looked at.
        properties: that were set.
        rewritten: path → why, of each file that was written anew: ``deletion vector``, ``field ids``, ``INT96 timestamps``,
            ``partition columns``.
        noted: path → why, of each file that stays as it is, with a new entry in the log: ``tag``, ``statistics``.
    """

    compat_version: int
    version: int
    properties: Mapping[str, str] = field(default_factory=dict)
    rewritten: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    noted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
