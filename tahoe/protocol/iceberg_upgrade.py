"""`Upgrade`, the result of making a table readable as Iceberg, shared by the operation and its callers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The result of an upgrade, or of its dry run.

    Args:
        compat_version: of IcebergCompat.
        version: the table's version afterwards; for a dry run, the version that was read.
        properties: the new properties.
        rewritten: path → reasons, for each rewritten file: ``deletion vector``, ``field ids``, ``INT96 timestamps``,
            ``partition columns``.
        noted: path → reasons, for each unchanged file with a new entry in the log: ``tag``, ``statistics``.
    """

    compat_version: int
    version: int
    properties: Mapping[str, str] = field(default_factory=dict)
    rewritten: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    noted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
