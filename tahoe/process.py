"""What a process has one of: the state of its conversions to Iceberg, finished when it exits, and what it compacts just now. Without Spark
it is loaded only where a table asks for them.
"""

from __future__ import annotations

from tahoe.ops.layout.auto_compact import Reserved
from tahoe.uniform.runtime import UniformRuntime

__all__ = ["COMPACTED_NOW", "UNIFORM_RUNTIME"]

# A module is loaded once, whichever thread asks first: so two threads never make two.
UNIFORM_RUNTIME = UniformRuntime()
UNIFORM_RUNTIME.finish_at_exit()

COMPACTED_NOW = Reserved()
