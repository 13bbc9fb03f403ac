"""A table with a feature, created and changed by Tahoe and delta-spark in turn: the calls of each, and the expected rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import VariantVal

from tahoe import Table
from tahoe.protocol.column_values.identity import identity_metadata
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import PrimitiveType, StructField, StructType

__all__ = ["IDENTITY", "Case", "Column", "Ours", "Rows", "Theirs", "after_change", "after_merge", "as_texts", "rows_of"]

START = dt.datetime(2020, 1, 1)
FEED = {"delta.enableChangeDataFeed": "true"}
WIDE = 2**31
"""Added to the numbers of the widened column after the widening."""

Rows = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class Column:
    """A column besides ``id`` and ``name``.

    Args:
        type: as Delta calls it.
        value: the value by the row's ``id``; None if the table generates it.
        sql: the same as an expression over ``id``; empty where the table fills the column in.
        metadata: of the column, where Tahoe makes the table.
        built: applied to delta-spark's column builder.
        stated: a clause of ALTER COLUMN for the existing table, which the builder does not support.
        in_arrow: a value as Tahoe is given it.
    """

    type: str
    value: Callable[[int], Any] | None
    sql: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    built: Callable[[Any], Any] = lambda column: column
    stated: str = ""
    in_arrow: Callable[[Any], Any] = lambda value: value


IDENTITY = {
    "number": Column(
        "long",
        None,
        metadata=identity_metadata(10, 5, allow_explicit=False),
        built=lambda column: column.generatedAlwaysAsIdentity(10, 5),
    )
}


@dataclass(frozen=True)
class Case:
    """How a table with a feature is made.

    Args:
        properties: of the table, which has a change data feed besides.
        columns: besides ``id`` and ``name``.
        appends_only: rows are added and never changed.
        not_null: the column ``id`` is required.
        check: a CHECK constraint.
        clustered: the table is clustered by ``id``.
        widens: the column ``n`` becomes a long once it has rows.
        feature: which must stand in the protocol; empty for the name of the case.
        leaves: the expected traces of the feature in the table at the end.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    appends_only: bool = False
    not_null: bool = False
    check: str = ""
    clustered: bool = False
    widens: bool = False
    feature: str = ""
    leaves: Callable[[Table], bool] = lambda _: True

    @property
    def given(self) -> Sequence[str]:
        """The columns for which writers give values."""
        return ["id", "name", *(name for name, column in self.columns.items() if column.sql)]

    def numbered(self) -> Case:
        """The same with row ids and an identity column."""
        return replace(
            self, properties={**self.properties, "delta.enableRowTracking": "true"}, columns={**self.columns, **IDENTITY}
        )


def rows_of(case: Case, first: int, last: int, letter: str = "n") -> Rows:
    """The values of rows with these ids, in the columns with known values."""
    known = {name: column.value for name, column in case.columns.items() if column.value is not None}
    return {
        number: {"id": number, "name": f"{letter}{number}", **{name: value(number) for name, value in known.items()}}
        for number in range(first, last)
    }


def after_merge(case: Case, rows: Rows, turn: int, first: int, last: int) -> Rows:
    """The rows after `merge`."""
    rows = {number: dict(row) for number, row in rows.items()}
    for number, row in rows_of(case, first, last, "m").items():
        if number not in rows or number % 3 != turn:
            rows[number] = rows.get(number, row) | {"name": row["name"]}
        else:
            del rows[number]
    return rows


def after_change(rows: Rows, turn: int) -> Rows:
    """The rows after `change`."""
    rows = {number: dict(row) for number, row in rows.items() if number % 4 != turn}
    for number, row in rows.items():
        row["name"] = row["name"].upper() if number % 5 == turn else row["name"]
    return rows


def as_texts(rows: pa.Table) -> pa.Table:
    """The same with variants as their JSON: one value may be written in several ways."""
    for at, each in enumerate(rows.schema):
        if pa.types.is_struct(each.type) and {part.name for part in each.type} == {"value", "metadata"}:
            texts = [value and str(VariantVal(value["value"], value["metadata"])) for value in rows.column(at).to_pylist()]
            rows = rows.set_column(at, each.name, pa.array(texts, pa.string()))
    return rows


class Ours:
    """Tahoe, without Spark."""

    def __init__(self, _: SparkSession, path: str, case: Case) -> None:
        self.path, self.case = path, case

    def make(self) -> None:
        table = Table.create(
            self.path,
            self._schema(),
            properties={**FEED, **self.case.properties},
            cluster_by=["id"] if self.case.clustered else None,
        )
        if self.case.check:
            table.add_constraint("small", self.case.check)

    def widen(self) -> None:
        Table(self.path).change_column("n", data_type=PrimitiveType("long"))

    def append(self, first: int, last: int) -> None:
        Table(self.path).append(self._arrow(rows_of(self.case, first, last)))

    def merge(self, turn: int, first: int, last: int) -> None:
        merge = Table(self.path).merge(self._arrow(rows_of(self.case, first, last, "m")), "target.id = source.id")
        merge = merge.when_matched_delete(f"source.id % 3 = {turn}").when_matched_update({"name": "source.name"})
        merge.when_not_matched_insert({name: f"source.{name}" for name in self.case.given}).execute()

    def change(self, turn: int) -> None:
        table = Table(self.path)
        table.delete(f"id % 4 = {turn}")
        table.update({"name": "upper(name)"}, f"id % 5 = {turn}")

    def _schema(self) -> StructType:
        fields = [StructField("id", PrimitiveType("long"), not self.case.not_null), StructField("name", PrimitiveType("string"))]
        fields += [
            StructField(name, PrimitiveType(column.type), True, dict(column.metadata))
            for name, column in self.case.columns.items()
        ]
        return StructType(tuple(fields))

    def _arrow(self, rows: Rows) -> pa.Table:
        kinds = {each.name: to_arrow_type(each.data_type) for each in Table(self.path).schema()}
        columns = {}
        for name in self.case.given:
            in_arrow = self.case.columns[name].in_arrow if name in self.case.columns else lambda value: value
            columns[name] = pa.array([in_arrow(row[name]) for row in rows.values()], kinds[name])
        return pa.table(columns)


class Theirs:
    """delta-spark."""

    def __init__(self, jvm: SparkSession, path: str, case: Case) -> None:
        self.jvm, self.path, self.name, self.case = jvm, path, f"delta.`{path}`", case

    def make(self) -> None:
        """By the builder in Scala: the reference's SQL knows no identity and no generated columns."""
        tables, session = self.jvm._jvm.io.delta.tables.DeltaTable, self.jvm._jsparkSession
        builder = tables.create(session).location(self.path)
        for key, value in {**FEED, **self.case.properties}.items():
            builder = builder.property(key, value)
        builder = builder.addColumn(
            tables.columnBuilder(session, "id").dataType("LONG").nullable(not self.case.not_null).build()
        ).addColumn("name", "STRING")
        for name, column in self.case.columns.items():
            built = tables.columnBuilder(session, name).dataType("INT" if column.type == "integer" else column.type)
            builder = builder.addColumn(column.built(built).build())
        if self.case.clustered:
            names = self.jvm.sparkContext._gateway.new_array(self.jvm._jvm.java.lang.String, 1)
            names[0] = "id"
            builder = builder.clusterBy(names)
        builder.execute()
        stated = [f"ALTER COLUMN {name} {column.stated}" for name, column in self.case.columns.items() if column.stated]
        stated += [f"ADD CONSTRAINT small CHECK ({self.case.check})"] if self.case.check else []
        for statement in stated:
            self.jvm.sql(f"ALTER TABLE {self.name} {statement}")

    def widen(self) -> None:
        self.jvm.sql(f"ALTER TABLE {self.name} ALTER COLUMN n TYPE BIGINT")

    def append(self, first: int, last: int) -> None:
        names = ", ".join(self.case.given)
        self.jvm.sql(f"INSERT INTO {self.name} ({names}) {self._rows(first, last)}")

    def merge(self, turn: int, first: int, last: int) -> None:
        values = ", ".join(f"s.{name}" for name in self.case.given)
        self.jvm.sql(
            f"MERGE INTO {self.name} t USING ({self._rows(first, last, 'm')}) s ON t.id = s.id "
            f"WHEN MATCHED AND s.id % 3 = {turn} THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(self.case.given)}) VALUES ({values})"
        )

    def change(self, turn: int) -> None:
        self.jvm.sql(f"DELETE FROM {self.name} WHERE id % 4 = {turn}")
        self.jvm.sql(f"UPDATE {self.name} SET name = upper(name) WHERE id % 5 = {turn}")

    def rows(self) -> DataFrame:
        return self._as_texts(self._load())

    def changes(self, start: int) -> DataFrame:
        reader = self.jvm.read.format("delta").option("readChangeFeed", "true").option("startingVersion", start)
        return self._as_texts(reader.load(self.path).drop("_commit_timestamp"))

    def row_ids(self) -> DataFrame:
        return self._load().selectExpr("id", "_metadata.row_id", "_metadata.row_commit_version")

    def _load(self) -> DataFrame:
        return self.jvm.read.format("delta").load(self.path)

    def _as_texts(self, rows: DataFrame) -> DataFrame:
        variants = {name: f"to_json({name}) AS {name}" for name, column in self.case.columns.items() if column.type == "variant"}
        return rows.selectExpr(*(variants.get(name, name) for name in rows.columns))

    def _rows(self, first: int, last: int, letter: str = "n") -> str:
        more = "".join(f", {self.case.columns[name].sql} {name}" for name in self.case.given[2:])
        return f"SELECT id, concat('{letter}', id) name{more} FROM range({first}, {last})"
