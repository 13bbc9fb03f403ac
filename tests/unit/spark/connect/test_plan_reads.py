"""The reads of a Spark Connect request that push filters: those below a filter whose relation is scanned once."""

from __future__ import annotations

from pyspark.sql.connect import proto

from tahoe.spark.connect.requests.plan_reads import delta_reads, reads_delta


def read(path: str = "/t", format: str = "delta") -> proto.Relation:
    relation = proto.Relation()
    relation.read.data_source.format = format
    relation.read.data_source.paths.append(path)
    return relation


def filtered(relation: proto.Relation, plan_id: int = 0) -> proto.Relation:
    above = proto.Relation()
    above.common.plan_id = plan_id
    above.filter.input.CopyFrom(relation)
    return above


def joined(left: proto.Relation, right: proto.Relation) -> proto.Relation:
    above = proto.Relation()
    above.join.left.CopyFrom(left)
    above.join.right.CopyFrom(right)
    return above


def query(text: str, *names: str) -> proto.Relation:
    above = proto.Relation()
    above.with_relations.root.sql.query = text
    for name in names:
        reference = above.with_relations.references.add()
        reference.subquery_alias.alias = name
        reference.subquery_alias.input.CopyFrom(read(name))
    return above


def pushing(relation: proto.Relation, *persisted: int) -> list[str]:
    plan = proto.Plan()
    plan.root.CopyFrom(relation)
    return [each.source.paths[0] for each in delta_reads(plan, persisted) if each.pushes]


def test_reads_below_a_filter_or_a_join_push() -> None:
    assert pushing(filtered(read())) == ["/t"]
    assert pushing(joined(read("/a"), filtered(read("/b")))) == ["/a", "/b"]


def test_reads_without_a_filter_and_of_other_formats_do_not() -> None:
    assert pushing(read()) == []
    assert pushing(filtered(read(format="parquet"))) == []
    table = proto.Relation()
    table.read.named_table.unparsed_identifier = "t"
    assert pushing(filtered(table)) == []
    stream = read()
    stream.read.is_streaming = True
    assert pushing(filtered(stream)) == []


def test_a_query_pushes_for_a_relation_that_its_text_names_once() -> None:
    assert pushing(query("SELECT * FROM _a WHERE id = 1 -- _a", "_a")) == ["_a"]
    assert pushing(query("SELECT * FROM `_a` AS x JOIN `_b` JOIN _b", "_a", "_b")) == ["_a"]
    assert pushing(query("WITH t AS (SELECT * FROM _a) SELECT * FROM t", "_a")) == ["_a"]
    assert pushing(query("WITH t AS (SELECT * FROM _a) SELECT * FROM t JOIN t AS u", "_a")) == []


def test_references_of_subqueries_do_not_push() -> None:
    relation = proto.Relation()
    relation.with_relations.root.CopyFrom(filtered(read()))
    relation.with_relations.references.add().CopyFrom(read())
    assert pushing(relation) == []


def test_a_persisted_plan_stays_as_the_server_knows_it() -> None:
    assert pushing(filtered(read(), plan_id=7), 7) == []
    assert pushing(filtered(read(), plan_id=7), 8) == ["/t"]


def test_writes_push_and_views_do_not() -> None:
    plan = proto.Plan()
    plan.command.write_operation.input.CopyFrom(filtered(read()))
    assert [each.pushes for each in delta_reads(plan)] == [True]
    plan = proto.Plan()
    plan.command.create_dataframe_view.input.CopyFrom(filtered(read()))
    assert list(delta_reads(plan)) == []


def test_a_plan_of_delta_tables_is_recognized() -> None:
    plans = [proto.Plan(root=relation) for relation in (query("SELECT 1", "a"), filtered(read(format="csv")), proto.Relation())]
    assert [reads_delta(plan) for plan in plans] == [True, False, False]
