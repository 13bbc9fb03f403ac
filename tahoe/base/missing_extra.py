"""The error for a package that is not installed because it belongs to an extra of Tahoe."""

from __future__ import annotations

from tahoe.base.exceptions import Unsupported


class MissingExtra(Unsupported, ImportError):
    """A package is not installed; an `ImportError` too, so that programs can continue without it."""

    default_code = "TAHOE_LIBRARY_MISSING"


def missing_pyspark(name: str, package: str) -> MissingExtra:
    """Return the error for a name of Tahoe that needs PySpark.

    Args:
        name: the name.
        package: the missing package.
    """
    return MissingExtra(
        f"{name} needs PySpark, and the package '{package}' is not installed: pip install 'tahoe-delta[spark]', or pyspark 4.0 to 4.3. "
        "tahoe.Table works without it.",
        package=package,
        extra="spark",
    )
