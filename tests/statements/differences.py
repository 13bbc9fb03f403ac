"""Where Tahoe does otherwise than delta-spark 4.0.1, each with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.statements.lives import KINDS

__all__ = ["DIFFERENCES", "Difference"]


@dataclass(frozen=True)
class Difference:
    """One way in which outcomes differ; where it names a life, the life must show it.

    Args:
        life, statement, key: of the outcomes, as patterns of a shell.
        kinds: of the tables.
        pyspark: how the version of PySpark begins in which it is so.
    """

    reason: str
    life: str
    statement: str
    key: str
    kinds: Sequence[str] = KINDS
    pyspark: str = ""


DIFFERENCES: Sequence[Difference] = ()
