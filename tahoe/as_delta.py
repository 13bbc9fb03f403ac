"""Provides the module names of delta-spark if delta-spark is not installed (docs/design/017). Off until `install` is called:
``from tahoe import as_delta; as_delta.install()`` must precede the first ``from delta.tables import DeltaTable``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from tahoe.base.exceptions import InvalidRequest

__all__ = ["MODULES", "install"]

ORIGIN = "tahoe.as_delta"
"""The ``origin`` in the specification of each module that Tahoe provides; modules from files have their file name there."""
EXCEPTIONS = (
    "DeltaConcurrentModificationException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
)


def install() -> None:
    """Make ``import delta``, ``delta.tables``, ``delta.exceptions`` and the like return Tahoe's classes. A second call does nothing.

    It imports nothing and changes no session: `tahoe.enable` is still required.

    Raises `InvalidRequest` (`TAHOE_DELTA_SPARK_INSTALLED`): a package ``delta`` is installed, which would be hidden.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    there = _package_delta()
    if there is not None:
        raise InvalidRequest(
            f"`import delta` gives the package in {there}. Uninstall it (`pip uninstall delta-spark`) to have Tahoe answer for it, or leave "
            "it and import DeltaTable from tahoe.tables.",
            code="TAHOE_DELTA_SPARK_INSTALLED",
            file=there,
        )
    # Before the search of folders: one named `delta` beside a program would count as a package without code.
    sys.meta_path.insert(0, _Finder())


def _package_delta() -> str | None:
    """Return the location of the code of a package or module `delta`, or None."""
    if "delta" in sys.modules:
        return str(getattr(sys.modules["delta"], "__file__", None) or "sys.modules['delta']")
    package = find_spec("delta")
    return None if package is None else package.origin  # none: a folder of that name without code in it


class _Finder(MetaPathFinder, Loader):
    """Import finder that creates the modules of `MODULES`."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return a specification for delta-spark's names; None for any other."""
        if fullname not in MODULES:
            return None
        is_package = any(name.startswith(f"{fullname}.") for name in MODULES)
        return ModuleSpec(fullname, self, origin=ORIGIN, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        """Set the names of the module."""
        for name, value in MODULES[module.__name__]().items():
            setattr(module, name, value)


def _delta() -> Mapping[str, Any]:
    import delta.exceptions.captured  # type: ignore[import-not-found]  # noqa: F401 - the names of errors hold from the first import on
    from delta.pip_utils import configure_spark_with_delta_pip  # type: ignore[import-not-found]
    from delta.tables import DeltaTable  # type: ignore[import-not-found]

    names = {"DeltaTable": DeltaTable, "configure_spark_with_delta_pip": configure_spark_with_delta_pip, **_version()}
    return {**names, "__all__": list(names)}


def _tables() -> Mapping[str, Any]:
    from tahoe import tables

    return _public(tables, tables.__all__)


def _exceptions() -> Mapping[str, Any]:
    from tahoe import exceptions

    return _public(exceptions, EXCEPTIONS)


def _captured() -> Mapping[str, Any]:
    """Return the names of delta-spark's module: importing it makes PySpark raise the original errors that were raised behind the JVM."""
    from pyspark.errors.exceptions import captured

    from tahoe.spark.jvm.errors import install as install_conversion

    install_conversion()
    captured.convert_exception.__module__ = (
        "delta.exceptions.captured"  # delta-spark's check for an earlier installation reads this
    )
    return {**_exceptions(), "_delta_exception_patched": True}


def _pip_utils() -> Mapping[str, Any]:
    from tahoe.spark import session

    return _public(session, ["configure_spark_with_delta_pip"])


def _version() -> Mapping[str, Any]:
    from tahoe.base.version import __version__

    return {"__version__": __version__}


def _public(module: ModuleType, names: Iterable[str]) -> Mapping[str, Any]:
    values = {name: getattr(module, name) for name in names}
    return {**values, "__all__": list(values)}


MODULES: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "delta": _delta,
    "delta.tables": _tables,
    "delta.exceptions": _exceptions,
    "delta.exceptions.base": _exceptions,
    "delta.exceptions.captured": _captured,
    "delta.pip_utils": _pip_utils,
    "delta.version": _version,
}
"""The modules of delta-spark that Tahoe provides, each with the function that returns its names."""
