"""A Spark that keeps its private fields elsewhere is told by name. Without a JVM: fields and classes are answered by plain objects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tahoe.base.exceptions import Unsupported
from tahoe.spark.jvm.private_fields import private_field, private_value


class _Class:
    def __init__(self, name: str, fields: dict[str, Any], above: _Class | None = None) -> None:
        self._name, self._fields, self._above = name, fields, above

    def getName(self) -> str:  # noqa: N802 - Java's name
        return self._name

    def getSuperclass(self) -> _Class | None:  # noqa: N802 - Java's name
        return self._above

    def getDeclaredFields(self) -> list[Any]:  # noqa: N802 - Java's name
        return [
            SimpleNamespace(getName=lambda name=name: name, setAccessible=lambda _: None, get=lambda _, value=value: value)
            for name, value in self._fields.items()
        ]


def _object() -> Any:
    kind = _Class("spark.Reader", {"source": "delta"}, _Class("spark.Base", {"options": "inherited"}))
    return SimpleNamespace(getClass=lambda: kind)


def test_a_field_is_found_in_the_class_and_in_those_that_it_inherits_from() -> None:
    assert (private_value(_object(), "source", "read"), private_value(_object(), "options", "read")) == ("delta", "inherited")


def test_a_field_that_is_not_there_is_told_with_what_it_was_wanted_for() -> None:
    assert private_field(_object(), "schema") is None
    with pytest.raises(
        Unsupported, match=r"cannot read streams: spark\.Reader has no schema\. Use PySpark 4\.0 to 4\.3"
    ) as refused:
        private_value(_object(), "schema", "read streams")
    assert refused.value.code == "TAHOE_SPARK_VERSION"
