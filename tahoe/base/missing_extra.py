"""Errors for packages that are not installed, here because they belong to an extra of Tahoe, or on Spark's executors."""

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


def missing_on_executors(package: str, python: str) -> MissingExtra:
    """Return the error for a package that a task of Spark needs.

    Args:
        package: the missing package.
        python: the program that runs the tasks.
    """
    return MissingExtra(
        f"Spark's executors need the package '{package}', which their Python, {python}, does not have. Install pyarrow and pyroaring there, "
        "or set PYSPARK_PYTHON to a Python that has them.",
        code="TAHOE_PACKAGE_MISSING_ON_EXECUTORS",
        package=package,
    )
