"""A commit computes each fact about its table once, however many of its steps need it."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import ENFORCED
from tahoe.txn import prepare
from tahoe.txn.transaction import Transaction

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
CHANGES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(ROWS),
    "overwrite": lambda table: table.overwrite(ROWS),
    "replace": lambda table: table.overwrite(ROWS, replace_where="id > 0"),
    "delete": lambda table: table.delete("id = 2"),
    "update": lambda table: table.update({"id": "id + 1"}, "id = 3"),
    "merge": lambda table: table.merge(ROWS, "source.id = target.id").when_matched_update_all().execute(),
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the recorded calls, in order."""
    questions: list[str] = []
    writable, future = TableConfig.ensure_writable, prepare._future_config

    def ensure_writable(config: TableConfig, enforced: frozenset[str] = frozenset()) -> None:
        questions.append("writable")
        writable(config, enforced)

    def future_config(transaction: Transaction) -> TableConfig:
        questions.append("future")
        return future(transaction)

    monkeypatch.setattr(TableConfig, "ensure_writable", ensure_writable)
    monkeypatch.setattr(prepare, "_future_config", future_config)
    return questions


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_commit_of_rows_computes_the_configuration_and_checks_it_once(
    change: Callable[[Table], object], calls: list[str]
) -> None:
    table = Table.create(f"memory://{uuid.uuid4()}", ROWS.schema)
    table.append(ROWS)
    calls.clear()
    change(table)
    assert sorted(calls) == ["future", "writable"]


def test_a_commit_of_metadata_checks_the_configuration_before_and_after(calls: list[str]) -> None:
    table = Table.create(f"memory://{uuid.uuid4()}", ROWS.schema)
    calls.clear()
    table.append(ROWS.append_column("more", pa.array(["a", "b", "c"])), merge_schema=True)
    assert sorted(calls) == ["future", "writable", "writable"]


def test_a_writer_that_enforces_less_is_checked_again(calls: list[str]) -> None:
    table = Table.create(f"memory://{uuid.uuid4()}", ROWS.schema)
    transaction = table.begin()
    config = transaction.existing().config
    calls.clear()
    transaction.ensure_writable(config, ENFORCED)
    transaction.ensure_writable(config, ENFORCED)
    transaction.ensure_writable(config, frozenset())
    transaction.ensure_writable(config, ENFORCED)
    assert calls == ["writable", "writable"]


def test_new_metadata_gives_a_new_configuration() -> None:
    table = Table.create(f"memory://{uuid.uuid4()}", ROWS.schema)
    transaction = table.begin()
    snapshot = transaction.existing()
    assert prepare.future_config(transaction) is snapshot.config
    transaction.set_metadata(prepare.with_enablement(snapshot.config, 3, 4).metadata)
    first = prepare.future_config(transaction)
    assert first.metadata.configuration["delta.inCommitTimestampEnablementVersion"] == "3"
    assert prepare.future_config(transaction) is first
