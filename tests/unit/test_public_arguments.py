"""Every public function compares its arguments with its annotations, and says which one is wrong."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
import pytest

import tahoe
from tahoe.api.several_tables import TableInTransaction
from tahoe.api.table import Table
from tahoe.base.argument_checks import is_known_kind, kinds_of, parts_of
from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.rows.insert import WriteOptions
from tahoe.uniform.handle import UniformHandle
from tests.public_api import Method, methods, modules_of_classes, reached, wrong_values

FUNCTIONS = [tahoe.read_together, tahoe.transaction, tahoe.cache.limit]
ROOTS = [Table, tahoe.SqlCoordinator, UniformHandle, TableInTransaction, *FUNCTIONS]
FOR_OPERATIONS = {"AddFile", "RemoveFile", "StructField", "StructType", "Transaction"}
"""Values that operations pass to one another, millions of times: these do not check their arguments."""


def public_methods() -> list[Method]:
    actual = [Method(None, function.__name__, function) for function in FUNCTIONS]
    for owner in reached(ROOTS):
        if owner.__name__ not in FOR_OPERATIONS:
            actual += methods(owner)
    return [*actual, Method(WriteOptions, "__init__", WriteOptions.__init__)]


METHODS = public_methods()
PARAMETERS = [(method, parameter) for method in METHODS for parameter in method.parameters]


def test_all_public_methods_with_parameters_are_checked() -> None:
    assert [str(method) for method in METHODS if method.parameters and not method.is_checked] == []
    assert len(PARAMETERS) > 200


def test_all_annotations_are_of_known_kinds() -> None:
    classes = {*modules_of_classes(), "DuckDBPyConnection", "Schema", "Table"}
    annotations = {str(item.annotation) for _, item in PARAMETERS if item.kind != inspect.Parameter.VAR_KEYWORD}
    parts = {part for annotation in annotations for part in parts_of(annotation)}
    assert [part for part in sorted(parts) if not is_known_kind(part) and part.rpartition(".")[2] not in classes] == []


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_wrong_argument_is_refused_by_its_name(method: Method) -> None:
    owner = method.owner
    if owner is None or method.name == "__init__" or isinstance(inspect.getattr_static(owner, method.name), classmethod):
        call: Any = method.function if owner is None else getattr(owner, method.name)
        first = (None,) if method.name == "__init__" else ()
    else:
        call, first = method.function, (object.__new__(owner),)
    for parameter in method.parameters:
        if parameter.kind == inspect.Parameter.VAR_KEYWORD:
            continue
        for value in wrong_values(parameter):
            is_named = parameter.kind != inspect.Parameter.VAR_POSITIONAL
            more, named = ((), {parameter.name: value}) if is_named else ((value,), {})
            with pytest.raises(InvalidRequest) as raised:
                call(*first, *more, **named)
            assert isinstance(raised.value, TypeError)
            assert raised.value.facts["parameter"] == parameter.name and f"'{parameter.name}'" in str(raised.value)


def test_a_list_of_names_may_be_one_name() -> None:
    lists = [(method, item) for method, item in PARAMETERS if "Sequence[str]" in str(item.annotation)]
    assert len(lists) > 10
    for _, parameter in lists:
        converted = [kind.converted("id") for kind in kinds_of(str(parameter.annotation))]
        assert ("id",) in converted and "id" not in converted


class TestCalls:
    @pytest.fixture
    def table(self, tmp_path) -> Table:
        table = Table.create(tmp_path / "t", {"id": "int", "name": "string", "d": pa.float64()}, partition_by="name")
        table.append(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "name": ["a", "b", None], "d": [1.0, float("nan"), None]}))
        return table

    def test_one_name_is_one_column(self, table) -> None:
        assert table.snapshot().partition_columns == ("name",)
        assert table.to_arrow(columns="id").column_names == ["id"]
        assert table.overwrite(table.to_arrow(), partition_by="id", overwrite_schema=True) == 2
        assert table.snapshot().partition_columns == ("id",)

    def test_python_values_are_sql_values(self, table) -> None:
        table.update({"id": 5, "d": None}, "id = 1")
        table.update({"d": 2.5}, [("name", "=", "b")])
        rows = sorted(table.to_arrow(columns=["id", "d"]).to_pylist(), key=lambda row: row["id"])
        assert rows == [{"id": 2, "d": 2.5}, {"id": 3, "d": None}, {"id": 5, "d": None}]

    def test_properties_may_be_truth_values_and_numbers(self, table) -> None:
        table.set_properties({"delta.appendOnly": False, "delta.dataSkippingNumIndexedCols": 3})
        configuration = table.snapshot().metadata.configuration
        assert (configuration["delta.appendOnly"], configuration["delta.dataSkippingNumIndexedCols"]) == ("false", "3")

    def test_a_version_in_quotes_is_refused_with_the_remedy(self, table) -> None:
        for call in (table.restore, lambda version: table.to_arrow(version=version), table.snapshot):
            with pytest.raises(InvalidRequest, match=r"'version' must be a whole number, found '0' \(str\)\. Write version=0"):
                call("0")
