"""The table features that constrain or complete rows. Separate from `constraints`, which imports all of `expr`: a reader starts fast."""

from __future__ import annotations

__all__ = ["ENFORCED"]

ENFORCED = frozenset(
    {"allowColumnDefaults", "char/varchar", "checkConstraints", "generatedColumns", "identityColumns", "invariants"}
)
"""The table features that `tahoe.protocol.constraints.check`, `generated_values` and `column_values` enforce together, and the lengths of
``char`` and ``varchar``, which are not a table feature."""
