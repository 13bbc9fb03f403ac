"""What the modules here need beside Tahoe, and the error where it is absent."""

from __future__ import annotations

from tahoe.exceptions import Unsupported

__all__ = ["extra_missing"]

_EXTRAS = {"pyiceberg": "iceberg"}
"""The extra that brings a library, where it is not ``testing``."""


def extra_missing(error: ImportError, module: str) -> Unsupported:
    """What to raise where a library is not installed: it names the extra that brings it.

    Args:
        error: what importing the library raised.
        module: the module of `tahoe.testing` that needs it.
    """
    library = (error.name or str(error)).partition(".")[0]
    extra = _EXTRAS.get(library, "testing")
    return Unsupported(
        f"{module} needs {library}, which is not installed: pip install 'tahoe-delta[{extra}]'.", code="TAHOE_LIBRARY_MISSING"
    )
