"""Private members of Spark's objects; plain objects take the part of the JVM's classes, fields and methods."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tahoe.base.exceptions import Unsupported
from tahoe.spark.versions.members import has_field, private_field, private_method, private_value


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

    def getDeclaredMethods(self) -> list[Any]:  # noqa: N802 - Java's name
        return [
            SimpleNamespace(
                getName=lambda: "start", getParameterCount=lambda count=count: count, setAccessible=lambda _: None, count=count
            )
            for count in (1, 5)
        ]


def _object() -> Any:
    kind = _Class("spark.Reader", {"source": "delta"}, _Class("spark.Base", {"options": "inherited"}))
    return SimpleNamespace(getClass=lambda: kind)


def test_a_field_of_the_class_or_of_a_superclass_is_found() -> None:
    assert (private_value(_object(), "source", "read"), private_value(_object(), "options", "read")) == ("delta", "inherited")


def test_the_error_for_a_missing_field_names_it_and_its_use() -> None:
    assert private_field(_object(), "schema") is None
    with pytest.raises(
        Unsupported, match=r"cannot read streams: spark\.Reader has no schema\. Use PySpark 4\.0 to 4\.3"
    ) as refused:
        private_value(_object(), "schema", "read streams")
    assert refused.value.code == "TAHOE_SPARK_VERSION"


def test_a_method_is_found_by_its_name_and_number_of_parameters() -> None:
    assert private_method(_object(), "start", 5, "write streams").count == 5
    with pytest.raises(Unsupported, match=r"cannot write streams: spark\.Reader has no stop with 0 parameters"):
        private_method(_object(), "stop", 0, "write streams")


def test_the_fields_of_a_case_class_are_known_by_name() -> None:
    kind = SimpleNamespace(getName=lambda: "spark.Insert")
    record = SimpleNamespace(
        getClass=lambda: kind,
        productElementNames=lambda: SimpleNamespace(mkString=lambda separator: separator.join(("table", "query"))),
    )
    assert (has_field(record, "query"), has_field(record, "withSchemaEvolution")) == (True, False)
