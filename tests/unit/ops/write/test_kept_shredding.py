"""Shredded variants stay shredded in files rewritten without Spark, in the layout of their writer."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe import Table
from tahoe.protocol.actions import AddFile
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.txn.transaction import Operation
from tests.variant_values import apart, decoded

NAMES = ("a", "l", "rest", "t")
SHAPE = ("object", {"a": "int32", "l": ("array", "string"), "t": "timestamp"})
TREES = [
    ("object", {"a": ("int32", 1), "l": ("array", [("string", "x"), ("string", "é")])}),
    ("object", {"a": ("string", "no number"), "rest": ("double", 0.5)}),
    None,
    ("array", [("int8", 1)]),
    ("object", {}),
]


SCHEMA = StructType((StructField("id", PrimitiveType("long")), StructField("v", PrimitiveType("variant"))))


def shredded_table(path, shapes, **properties):
    """A table of a file for each shape, with the trees in each."""
    every = {"delta.enableVariantShredding": "true", **properties}
    table = Table.create(path, SCHEMA, properties=every)
    transaction = table.begin()
    for number, shape in enumerate(shapes):
        variants = apart(TREES, shape, NAMES)
        # As Spark writes them: of a variant that is there the metadata is.
        fields = [field.with_nullable(field.name != "metadata") for field in variants.type.fields]
        variants = pa.StructArray.from_arrays(
            [
                part.fill_null(b"") if field.name == "metadata" else part
                for part, field in zip(variants.flatten(), fields, strict=True)
            ],
            fields=fields,
            mask=variants.is_null(),
        )
        ids = pa.array(range(10 * number, 10 * number + len(TREES)), pa.int64())
        sink = io.BytesIO()
        stored = [
            pa.field(column.physical_name, values.type, metadata={"PARQUET:field_id": str(column.field_id or 0)})
            for column, values in zip(table.schema(), (ids, variants), strict=True)
        ]
        pq.write_table(pa.table([ids, variants], schema=pa.schema(stored)), sink)
        table.store.put(f"f{number}.parquet", sink.getvalue())
        stats = f'{{"numRecords":{len(TREES)}}}'
        transaction.stage(AddFile(f"f{number}.parquet", {}, len(sink.getvalue()), 0, True, stats))
    table.commit(transaction, Operation("WRITE"))
    return table


def kinds(table):
    """The types of the variant in the live files."""
    name = table.schema().field("v").physical_name
    return [pq.read_schema(io.BytesIO(table.store.get(file))).field(name).type for file in table.files()["path"].to_pylist()]


def rows(table):
    actual = table.to_arrow().sort_by("id").to_pylist()
    return {row["id"]: row["v"] and decoded(row["v"]["metadata"], row["v"]["value"]) for row in actual}


def expected(files=2):
    return {10 * file + number: tree for file in range(files) for number, tree in enumerate(TREES)}


@pytest.mark.parametrize(
    "properties",
    [{}, {"delta.columnMapping.mode": "name"}, {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}],
    ids=["", "mapped", "tracked"],
)
def test_optimize_leaves_them_as_they_are(tmp_path, properties):
    table = shredded_table(tmp_path, [SHAPE, SHAPE], **properties)
    before = kinds(table)[0]
    assert rows(table) == expected()
    expected_rows = expected()
    if "delta.enableDeletionVectors" in properties:
        table.delete("id = 10")
        del expected_rows[10]
    table.optimize()
    (after,) = kinds(table)
    assert after.equals(before)
    assert not after.field("metadata").nullable
    assert rows(table) == expected_rows
    (stats,) = table.files()["stats"].to_pylist()
    assert '"nullCount":{' in stats and "typed_value" not in stats and "metadata" not in stats
    assert table.check(deep=True, strict=True) == []


def test_beside_a_file_from_before_the_column_they_are_put_together(tmp_path):
    table = shredded_table(tmp_path, [SHAPE])
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([99], pa.int64())}), sink)
    table.store.put("old.parquet", sink.getvalue())
    transaction = table.begin()
    transaction.stage(AddFile("old.parquet", {}, len(sink.getvalue()), 0, True, '{"numRecords":1}'))
    table.commit(transaction, Operation("WRITE"))
    table.optimize()
    assert [{field.name for field in kind.fields} for kind in kinds(table)] == [{"metadata", "value"}]
    assert rows(table) == {**expected(1), 99: None}


def test_clustering_leaves_them_as_they_are(tmp_path):
    table = shredded_table(tmp_path, [SHAPE, SHAPE])
    before = kinds(table)[0]
    table.optimize(zorder_by=["id"])
    assert all(kind.equals(before) for kind in kinds(table))
    assert rows(table) == expected()


@pytest.mark.parametrize(
    ("shapes", "properties"),
    [
        ([SHAPE, ("object", {"a": "int64"})], {}),
        (["time", "time"], {}),
        ([SHAPE, SHAPE], {"delta.columnMapping.mode": "id"}),
    ],
    ids=["files differ", "no type of Delta", "by ids"],
)
def test_variants_that_cannot_be_copied_as_stored_are_reassembled(tmp_path, shapes, properties):
    table = shredded_table(tmp_path, shapes, **properties)
    table.optimize()
    assert {field.name for kind in kinds(table) for field in kind.fields} == {"metadata", "value"}
    assert rows(table) == expected()


def test_a_table_that_wants_them_in_one_piece_gets_them_so(tmp_path):
    table = shredded_table(tmp_path, [SHAPE, SHAPE])
    table.set_properties({"delta.enableVariantShredding": "false"})
    table.optimize()
    assert {field.name for kind in kinds(table) for field in kind.fields} == {"metadata", "value"}
    assert rows(table) == expected()
