"""State that exists once per process: the runtime of the Iceberg conversions, which finishes at exit, and the partitions being compacted.

Without Spark it is imported only when a table needs it.
"""

from __future__ import annotations

from tahoe.ops.layout.auto_compact import PartitionReservations
from tahoe.uniform.runtime import UniformRuntime

# A module is loaded once, so two threads never create two runtimes.
UNIFORM_RUNTIME = UniformRuntime()
UNIFORM_RUNTIME.finish_at_exit()

COMPACTED_NOW = PartitionReservations()
