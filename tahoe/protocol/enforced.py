"""The table features that say what rows must fulfil. Apart from `constraints`, which needs all of `expr`, so that a reader starts fast."""

from __future__ import annotations

__all__ = ["ENFORCED"]

ENFORCED = frozenset({"checkConstraints", "generatedColumns", "invariants"})
"""The table features that `tahoe.protocol.constraints.check` and `generated_values` enforce together."""
