"""Releases memory that Arrow keeps for reuse to the system during a long read."""

from __future__ import annotations

import pyarrow as pa


class MemoryRelease:
    """Counts the bytes that pass through one point of the code, and from time to time makes Arrow release its unused memory.

    Arrow's allocator keeps the freed memory of each thread for that thread, and releases only the memory of the calling thread. The thread
    that reads and the thread that consumes therefore count separately; otherwise they would keep several times the memory in use.
    """

    def __init__(self) -> None:
        self._passed = 0
        self._used = pa.total_allocated_bytes()

    def passed(self, size: int) -> None:
        """Count bytes that have passed."""
        self._passed += size
        if self._passed >= _BYTES_BETWEEN:
            used = pa.total_allocated_bytes()
            # If all rows are kept, little is freed, and memory that was released must be requested again.
            if used - self._used < self._passed // 2:
                pa.default_memory_pool().release_unused()
            self._passed, self._used = 0, used


_BYTES_BETWEEN = 32 * 1024 * 1024
