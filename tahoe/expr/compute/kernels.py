"""How each function of `tahoe.expr.tree.functions` is computed on Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tahoe.expr.compute.arithmetic import ARITHMETIC
from tahoe.expr.compute.comparison import COMPARISONS
from tahoe.expr.compute.text_functions import TEXTS
from tahoe.expr.compute.time_functions import TIMES
from tahoe.expr.compute.values import Array

__all__ = ["KERNELS"]

KERNELS: Mapping[str, Callable[..., Array]] = {**COMPARISONS, **ARITHMETIC, **TEXTS, **TIMES}
"""Name to a function of the call and its arguments' arrays."""
