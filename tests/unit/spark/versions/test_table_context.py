"""The arguments of `loadTable` of each Spark version mean the same table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tahoe.spark.versions.table_context import Travel, newest_context, requested


def java(name: str, **values: Any) -> Any:
    """An object of this Java class, whose methods return the values."""
    methods = {method: lambda value=value: value for method, value in values.items()}
    return SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: name), **methods)


def context(travel: Any, privileges: int = 0) -> Any:
    optional = SimpleNamespace(orElse=lambda default: default if travel is None else travel)
    return java("TableContext", timeTravel=optional, writePrivileges=SimpleNamespace(size=lambda: privileges))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), (None, False)),
        (("3",), ("3", False)),
        ((1_000_000,), (1_000_000, False)),
        ((java("HashSet"),), (None, True)),
        ((context(None),), (None, False)),
        ((context(None, privileges=1),), (None, True)),
        ((context(java("VersionTravel", version="3")),), ("3", False)),
        ((context(java("TimestampTravel", micros=1_000_000)),), (1_000_000, False)),
    ],
    ids=["newest", "version", "timestamp", "privileges", "4.3", "4.3 privileges", "4.3 version", "4.3 timestamp"],
)
def test_each_form_of_a_request_is_understood(arguments: tuple[Any, ...], expected: tuple[Travel, bool]) -> None:
    assert requested(*arguments) == expected


def test_only_spark_with_table_contexts_has_one_for_the_newest_version() -> None:
    created = []
    loader = SimpleNamespace(getResource=lambda name: name if name.endswith("catalog/TableContext.class") else None)
    newest_context(loader, lambda name: lambda *arguments: created.append((name.rpartition(".")[2], len(arguments))))
    assert created == [("HashSet", 0), ("TableContext", 2)]
    assert newest_context(SimpleNamespace(getResource=lambda name: None), lambda name: pytest.fail(name)) is None
