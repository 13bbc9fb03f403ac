"""Optional libraries of `tahoe.testing`, and the error if one is missing."""

from __future__ import annotations

from tahoe.base.exceptions import Unsupported

__all__ = ["extra_missing"]

_EXTRAS = {"pyiceberg": "iceberg"}
"""The extra that installs a library, if it is not ``testing``."""


def extra_missing(error: ImportError, module: str) -> Unsupported:
    """Return the error for a missing library, with the extra that installs it.

    Args:
        error: the import error.
        module: the module of `tahoe.testing` that needs the library.
    """
    library = (error.name or str(error)).partition(".")[0]
    extra = _EXTRAS.get(library, "testing")
    return Unsupported(
        f"{module} needs {library}, which is not installed: pip install 'tahoe-delta[{extra}]'.", code="TAHOE_LIBRARY_MISSING"
    )
