"""The schema of a table after a MERGE."""

from __future__ import annotations

from tahoe.ops.merge.clauses import Action, Clause, Kind
from tahoe.ops.merge.schema import evolved_schema
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType
from tahoe.schema.widening import NO_WIDENING, Widening

P = PrimitiveType


def struct(**named: DataType) -> StructType:
    return StructType(tuple(StructField(name, data_type) for name, data_type in named.items()))


def test_assigned_columns_become_as_wide_as_those_of_the_source_and_keep_types_that_do_not_widen() -> None:
    table = struct(a=P("byte"), s=struct(x=P("float"), y=P("string")), l=ArrayType(P("date")), m=MapType(P("short"), P("long")))
    source = struct(
        A=P("long"),
        s=struct(X=P("double"), z=P("long")),
        l=ArrayType(P("string")),
        m=MapType(P("integer"), P("byte")),
        n=P("long"),
    )
    assigned = Clause(Kind.MATCHED, Action.UPDATE, None, tuple((name, "1") for name in ("a", "s.x", "l", "m")))
    assert evolved_schema(table, source, [assigned], Widening("ALWAYS")) == struct(
        a=P("long"), s=struct(x=P("double"), y=P("string")), l=ArrayType(P("date")), m=MapType(P("integer"), P("long"))
    )
    assert evolved_schema(table, source, [assigned], NO_WIDENING) == table


def test_an_assigned_void_column_gets_the_type_of_the_source_and_unassigned_columns_add_nothing() -> None:
    clauses = [
        Clause(Kind.MATCHED, Action.UPDATE, None, (("v", "source.v"),)),
        Clause(Kind.NOT_MATCHED_BY_SOURCE, Action.UPDATE, None, (("n", "1"),)),
    ]
    assert evolved_schema(struct(v=P("void")), struct(v=P("long"), n=P("long")), clauses) == struct(v=P("long"))
