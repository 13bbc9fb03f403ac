"""Names of streaming sources, with constructors that take a name and with those that do not."""

from __future__ import annotations

from types import SimpleNamespace

from tahoe.spark.versions.source_names import identified_by, name_argument, name_of_table
from tahoe.spark.versions.streaming_package import streaming_package


def test_a_constructor_gets_the_name_only_if_it_takes_one() -> None:
    table = SimpleNamespace(streamingSourceIdentifyingName=lambda: "orders")
    assert (name_argument([None] * 8), name_argument([None] * 9)) == ("", ", name")
    assert (name_of_table(table, [None] * 3), name_of_table(table, [None] * 4)) == ((), ("orders",))


def test_only_a_name_of_the_user_counts() -> None:
    kinds = {name: SimpleNamespace(getSimpleName=lambda name=name: name) for name in ("UserProvided", "Unassigned$")}
    named, unnamed = (SimpleNamespace(getClass=lambda kind=kind: kind, name=lambda: "orders") for kind in kinds.values())
    assert (identified_by(named), identified_by(unnamed)) == ("orders", None)


def test_streaming_classes_are_looked_for_in_both_packages() -> None:
    streaming = "org.apache.spark.sql.execution.streaming"
    has_moved, has_not = (SimpleNamespace(getResource=lambda _, found=found: found) for found in ("a URL", None))
    assert (streaming_package(has_moved), streaming_package(has_not)) == (f"{streaming}.runtime", streaming)
