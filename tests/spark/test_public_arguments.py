"""Wrong arguments of the public functions on Spark raise an error of Tahoe that names the parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tahoe
from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.spark.commands.merge.builder import DeltaMergeBuilder
from tahoe.spark.commands.upkeep import DeltaOptimizeBuilder
from tahoe.spark.in_transaction import DeltaTableInTransaction
from tahoe.tables import DeltaTable, DeltaTableBuilder, IdentityGenerator
from tests.public_api import Method, methods, reached

OWNERS = (DeltaTable, DeltaTableBuilder, DeltaMergeBuilder, DeltaOptimizeBuilder, DeltaTableInTransaction)
SAMPLES: dict[str, Any] = {
    "readerVersion": 1,
    "writerVersion": 2,
    "version": 0,
    "timestamp": "2026-01-01",
    "target": "/nowhere",
    "set": {},
}
SAMPLES |= {"values": {}, "condition": "true", "colName": "c", "dataType": "int", "key": "k", "value": "v", "identifier": "t"}
SAMPLES |= {"identifier": "t", "location": "/x", "comment": "c", "aliasName": "a", "mode": "m", "partitionFilter": "true"}
SAMPLES |= {"cols": [], "path": "/nowhere", "tableOrViewName": "t", "featureName": "f"}


@pytest.fixture(scope="module")
def objects(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[type, Any]:
    path = str(tmp_path_factory.mktemp("arguments") / "t")
    Table.create(path, {"id": "long"})
    table = DeltaTable.forPath(spark, path)
    in_transaction = object.__new__(DeltaTableInTransaction)
    in_transaction.__dict__.update(_spark=spark, _options={}, _alias=None, _table=None)
    merge = table.merge(spark.range(1).alias("s"), "false")
    builder = DeltaTable.create(spark)
    return {DeltaTable: table, DeltaTableBuilder: builder, DeltaMergeBuilder: merge, DeltaOptimizeBuilder: table.optimize()} | {
        DeltaTableInTransaction: in_transaction
    }


def cases() -> Iterator[tuple[Method, inspect.Parameter]]:
    for owner in OWNERS:
        for method in methods(owner):
            if method.name != "__init__":
                yield from (
                    (method, parameter) for parameter in method.parameters if parameter.kind != inspect.Parameter.VAR_KEYWORD
                )


def wrong_values(parameter: inspect.Parameter) -> list[Any]:
    """Values that the parameter does not accept. A mapping or a list is wrong by its elements."""
    annotation = str(parameter.annotation)
    if parameter.kind == inspect.Parameter.VAR_POSITIONAL:
        return [5, None, ["a", 5], b"a", {"a": 1}, object()]
    inside: list[Any] = [{1: "a"}, {"a": object()}] if "Mapping" in annotation or "dict" in annotation else [{"a": 1}]
    simple = {"str": "5", "bool": True, "int": 5, "float": 2.5, "None": None}
    # delta-spark takes no whole number for a truth value, and no truth value for a number.
    others = [value for name, value in simple.items() if name not in annotation and not (name == "int" and "float" in annotation)]
    return [object(), b"a", print, [object()], *inside, *others]


def called(method: Method, parameter: inspect.Parameter, wrong: Any, objects: dict[type, Any], spark: SparkSession) -> Any:
    """Calls the method with one wrong argument."""
    function = getattr(objects.get(method.owner, method.owner), method.name)
    if parameter.kind == inspect.Parameter.VAR_POSITIONAL:
        return function(wrong)
    frames = {"sparkSession": spark, "source": spark.range(1), "data": spark.range(1)}
    required = [item for item in method.parameters if item.kind != item.VAR_KEYWORD]
    names = [item.name for item in required if item.default is item.empty or item.name in ("set", "values")]
    return function(**({name: (SAMPLES | frames)[name] for name in names} | {parameter.name: wrong}))


def test_a_wrong_argument_is_refused_by_its_name(spark: SparkSession, objects: dict[type, Any]) -> None:
    tried, missed = 0, []
    for method, parameter in cases():
        for wrong in wrong_values(parameter):
            tried += 1
            try:
                called(method, parameter, wrong, objects, spark)
                missed.append((str(method), parameter.name, wrong, "was taken"))
            except InvalidRequest as error:
                if error.facts.get("parameter") != parameter.name or parameter.name not in str(error):
                    missed.append((str(method), parameter.name, wrong, error))
            except Exception as error:  # noqa: BLE001 - each is one that the test reports
                missed.append((str(method), parameter.name, wrong, error))
    assert not missed, "\n".join(map(str, missed))
    assert tried > 300


def test_all_classes_that_a_program_gets_are_tried() -> None:
    actual = {owner for owner in reached([DeltaTable]) if owner.__module__.startswith(("tahoe.spark", "tahoe.tables"))}
    assert actual - {*OWNERS, IdentityGenerator} == set()


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: tahoe.enable("spark"), "spark"),
        (lambda: tahoe.configure_spark_with_delta_pip("builder"), "spark_session_builder"),
        (lambda: tahoe.configure_spark_with_delta_pip(SparkSession.builder, [1]), "extra_packages"),
        (lambda: IdentityGenerator("1"), "start"),
        (lambda: IdentityGenerator(step=1.5), "step"),
        (lambda: IdentityGenerator(step=True), "step"),
    ],
)
def test_functions_and_values_name_theirs(call: Callable[[], Any], parameter: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        call()
    assert raised.value.facts["parameter"] == parameter and isinstance(raised.value, ValueError)


def test_one_package_is_no_list_of_letters() -> None:
    class Recorded(SparkSession.Builder):
        def config(self, *arguments: Any, **more: Any) -> Any:
            self.seen = arguments
            return self

    builder = Recorded()
    tahoe.configure_spark_with_delta_pip(builder, "org.example:library:1.0")  # type: ignore[arg-type]
    assert builder.seen == ("spark.jars.packages", "org.example:library:1.0")


def test_struct_fields_of_other_types_are_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidRequest, match="Column in existing schema must be StructField"):
        DeltaTable.create(spark).addColumns(["id"])  # type: ignore[list-item]
