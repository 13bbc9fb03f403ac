"""The cache of table data between queries of this process, under its public name: `tahoe.base.cache`."""

from tahoe.base.cache import Kept, clear, limit, report

__all__ = ["Kept", "clear", "limit", "report"]
