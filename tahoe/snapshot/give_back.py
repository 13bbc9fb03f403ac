"""Memory that Arrow keeps for later, given back to the system while a long read goes on."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["GiveBack"]


class GiveBack:
    """Counts the bytes that pass one place, and now and then has Arrow give back what it no longer uses.

    Arrow's allocator keeps the freed memory of each thread for that thread, and gives back that of the thread which asks. So a thread that
    reads and one that takes what was read count each for itself: together they would otherwise keep several times what is in use.
    """

    def __init__(self) -> None:
        self._passed = 0

    def passed(self, size: int) -> None:
        """So many bytes have passed."""
        self._passed += size
        if self._passed >= _BYTES_BETWEEN:
            self._passed = 0
            pa.default_memory_pool().release_unused()


_BYTES_BETWEEN = 32 * 1024 * 1024
