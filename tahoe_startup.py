"""Enables Delta in Spark sessions that other programs create (docs/design/038). ``tahoe_startup.pth`` calls `install` when Python starts.

A session is enabled, by `tahoe.enable`, if its setting ``spark.tahoe.enabled`` is true, or if the setting is absent and the environment
variable ``TAHOE_ENABLE`` is 1. With the variable, ``import delta`` finds Tahoe's classes too, unless delta-spark is installed.

Every start of Python in this environment runs this module. So it imports only `sys`; all else is imported when a program imports PySpark.

PYTEST_DONT_REWRITE: pytest wants to rewrite every module of a package with a plugin, and warns about those that are imported before.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

__all__ = ["SETTING", "VARIABLE", "install", "is_installed", "is_requested"]

VARIABLE = "TAHOE_ENABLE"
SETTING = "spark.tahoe.enabled"

_CLASSIC = "pyspark.sql.session"
_CONNECT = "pyspark.sql.connect.session"
_ON, _OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def install() -> None:
    """Make PySpark's session classes enable Delta in each session that requests it. A second call does nothing."""
    if is_installed():
        return
    sys.meta_path.insert(0, _Finder())
    for name in (_CLASSIC, _CONNECT):
        if name in sys.modules:
            _wrap_sessions(sys.modules[name])


def is_installed() -> bool:
    """Return whether sessions of this process are enabled by configuration."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


def is_requested(setting: object = None) -> bool:
    """Return whether the setting, or the environment variable if the setting is None, requests Delta.

    Raises `tahoe.exceptions.InvalidRequest` (`TAHOE_ENABLE_INVALID`): the value is not a boolean.
    """
    import os

    name, value = (VARIABLE, os.environ.get(VARIABLE, "")) if setting is None else (SETTING, str(setting))
    if value.strip().lower() in _ON:
        return True
    if value.strip().lower() in _OFF:
        return False
    from tahoe.exceptions import InvalidRequest

    raise InvalidRequest(
        f"{name} = {value!r} is not a boolean. Use 1 or 0.", code="TAHOE_ENABLE_INVALID", setting=name, value=value
    )


class _Finder:
    """Import finder that wraps PySpark's session classes after their import, and finds ``delta`` if Tahoe is to provide it."""

    def __init__(self) -> None:
        self._is_searching = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the other finders' specification, with a loader that wraps the sessions; None for all other modules."""
        if name not in (_CLASSIC, _CONNECT, "delta") or self._is_searching:
            return None
        if name == "delta" and not is_requested():
            return None
        self._is_searching = True
        try:
            return self._delta() if name == "delta" else self._session_module(name, path, target)
        finally:
            self._is_searching = False

    def _delta(self) -> ModuleSpec | None:
        from importlib.util import find_spec

        package = find_spec("delta")
        if package is not None and package.origin is not None:
            return package  # delta-spark itself; a folder of that name has no origin
        from tahoe import as_delta

        as_delta.install()
        return find_spec("delta")

    def _session_module(self, name: str, path: object, target: object) -> ModuleSpec | None:
        for finder in sys.meta_path:
            spec: ModuleSpec | None = finder.find_spec(name, path, target)  # type: ignore[arg-type]
            if spec is not None:
                spec.loader = _SessionLoader(spec.loader)  # type: ignore[assignment]
                return spec
        return None


class _SessionLoader:
    """The loader of a session module, which wraps the session class when the module was executed."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _wrap_sessions(module)


def _wrap_sessions(module: ModuleType) -> None:
    session = module.SparkSession
    _wrap(session.Builder, "getOrCreate", _create)
    _wrap(session.Builder, "create", _create)
    if module.__name__ == _CLASSIC:
        # Sessions without a builder: SparkSession(context), SQLContext, and those that the JVM created.
        _wrap(session, "__init__", _initialize)


def _wrap(owner: Any, name: str, replacement: Callable[..., Any]) -> None:
    import functools

    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(lambda *arguments, **named: replacement(original, *arguments, **named)))


def _create(original: Callable[..., Any], builder: Any) -> Any:
    setting = builder._options.get(SETTING)
    if is_requested(setting):
        from tahoe.spark.catalog.jar_settings import remove_jar_settings

        remove_jar_settings(builder._options)
    session = original(builder)
    _enable_if_requested(session, setting)
    return session


def _initialize(original: Callable[..., None], session: Any, *arguments: Any, **named: Any) -> None:
    original(session, *arguments, **named)
    options = named.get("options") or (arguments[2] if len(arguments) > 2 else None) or {}
    _enable_if_requested(session, options.get(SETTING))


_enabling: set[int] = set()
"""The threads that enable a session: Tahoe creates handles of the same session meanwhile."""


def _enable_if_requested(session: Any, setting: object) -> None:
    from threading import get_ident

    if get_ident() in _enabling:
        return
    if setting is None and type(session).__module__ == _CLASSIC:
        # Not the session's own settings: reading these would create its state, which can be slow or under way.
        setting = session.sparkContext._conf.get(SETTING)
    if not is_requested(setting):
        return
    _enabling.add(get_ident())
    try:
        from tahoe.spark.session import enable

        enable(session)
    finally:
        _enabling.discard(get_ident())
