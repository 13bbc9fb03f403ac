"""What makes a short command start fast."""

from __future__ import annotations

import sys

__all__ = ["import_anything", "import_little"]

_NOT_NEEDED = ("numpy", "pandas")


def import_little() -> None:
    """From here on this process goes without NumPy and pandas: Arrow imports them where they are installed, and needs neither; an answer
    takes three quarters of the time without them."""
    sys.meta_path.insert(0, _Without())


def import_anything() -> None:
    """For commands whose libraries do need them."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Without)]


class _Without:
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in _NOT_NEEDED:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
