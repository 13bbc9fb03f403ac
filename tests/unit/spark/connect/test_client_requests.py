"""The options of reads in the requests of a Spark Connect client."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.connect import proto

from tahoe.spark.connect.requests.client_requests import analyze, enable, execute, forget_persisted
from tests.unit.spark.connect.test_plan_reads import joined, read


class Session:
    """A session whose client sends nothing."""

    class Client:
        """A client, for which weak references are allowed."""

    def __init__(self) -> None:
        self.client = self.Client()


def sent_reads(session: Session, relation: proto.Relation) -> list[Any]:
    """The reads in the request that a client sends for a join of two."""
    request = proto.ExecutePlanRequest()
    request.plan.command.checkpoint_command.relation.CopyFrom(relation)
    execute(lambda *_: None, session.client, request)
    sent = request.plan.command.checkpoint_command.relation.join
    return [sent.left.read.data_source, sent.right.read.data_source]


def numbers(session: Session, relation: proto.Relation) -> list[str]:
    """The values of the option in the request that a client sends for a join of reads."""
    return [source.options.get("pushFilters", "") for source in sent_reads(session, relation)]


def test_each_request_reads_anew() -> None:
    session = Session()
    enable(session, lambda spark, message: None)
    (first, same), (second, _) = (numbers(session, joined(read("/a"), read("/b"))) for _ in range(2))
    assert first == same != second
    assert numbers(session, joined(read(format="parquet"), read()))[0] == ""
    own = read()
    own.read.data_source.options["pushFilters"] = "true"
    assert numbers(session, joined(own, read("/b")))[0] == "true"
    returned = read()
    returned.read.data_source.options["pushFilters"] = first
    assert numbers(session, joined(returned, read("/b")))[0] != first


def test_a_persisted_plan_keeps_its_number() -> None:
    session = Session()
    enable(session, lambda spark, message: None)
    stored = read()
    stored.common.plan_id = 7
    analyze(lambda *_, **__: None, session.client, "persist", relation=stored)
    number = stored.read.data_source.options["pushFilters"]
    stored.read.data_source.options.clear()
    assert numbers(session, joined(stored, read("/b")))[0] == number
    analyze(lambda *_, **__: None, session.client, "unpersist", relation=stored)
    assert stored.read.data_source.options["pushFilters"] == number
    assert numbers(session, joined(stored, read("/b")))[0] != number
    analyze(lambda *_, **__: None, session.client, "persist", relation=stored)
    forget_persisted(session.client)
    assert len({*numbers(session, joined(stored, read("/b")))}) == 1


class Views:
    """The views of a request, which note what happens to them."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def restore(self, message: Any) -> None:
        """Note the call."""
        self.events.append(f"restore {message}")

    def drop(self) -> None:
        """Note the call."""
        self.events.append("drop")


def test_views_of_subqueries_exist_until_the_last_answer() -> None:
    session, views = Session(), Views()
    enable(session, lambda spark, message: views)
    answers = [{"sql_command_result": "a plan"}, {"rows": 1}]
    received = execute(lambda *_: iter(answers), session.client, proto.ExecutePlanRequest())
    assert views.events == []
    assert list(received) == answers
    assert views.events == ["restore a plan", "drop"]


def test_views_of_subqueries_are_dropped_after_an_error() -> None:
    def failing(*_: Any, **__: Any) -> Any:
        yield {"rows": 1}
        raise OSError("the server is gone")

    session, views = Session(), Views()
    enable(session, lambda spark, message: views)
    with pytest.raises(OSError, match="gone"):
        list(execute(failing, session.client, proto.ExecutePlanRequest()))
    assert views.events == ["drop"]
    with pytest.raises(ZeroDivisionError):
        analyze(lambda *_, **__: 1 // 0, session.client, "schema", plan=proto.Plan())
    assert views.events == ["drop", "drop"]
