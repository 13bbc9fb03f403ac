"""How each function of `tahoe.expr.functions` is computed on Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tahoe.expr.arithmetic import ARITHMETIC
from tahoe.expr.comparison import COMPARISONS
from tahoe.expr.text_functions import TEXTS
from tahoe.expr.time_functions import TIMES
from tahoe.expr.values import Array

__all__ = ["KERNELS"]

KERNELS: Mapping[str, Callable[..., Array]] = {**COMPARISONS, **ARITHMETIC, **TEXTS, **TIMES}
"""Name to a function of the call and its arguments' arrays."""
