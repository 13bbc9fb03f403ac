"""What a commit must know of its table is asked once, however many of its steps need the answer."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.protocol.config import TableConfig
from tahoe.protocol.enforced import ENFORCED
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
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions, in order."""
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
def test_a_commit_that_changes_rows_asks_what_the_table_will_be_and_whether_it_may_write_once_each(
    change: Callable[[Table], object], asked: list[str]
) -> None:
    table = Table.create(f"memory://{uuid.uuid4()}", ROWS.schema)
    table.append(ROWS)
    asked.clear()
    change(table)
    assert sorted(asked) == ["future", "writable"]


def test_a_commit_that_changes_the_table_asks_for_the_table_before_and_after(asked: list[str]) -> None:
    table = Table.create(f"memory://{uuid.uuid4()}", ROWS.schema)
    asked.clear()
    table.append(ROWS.append_column("more", pa.array(["a", "b", "c"])), merge_schema=True)
    assert sorted(asked) == ["future", "writable", "writable"]


def test_who_enforces_less_is_asked_again(asked: list[str]) -> None:
    table = Table.create(f"memory://{uuid.uuid4()}", ROWS.schema)
    transaction = table.begin()
    config = transaction.existing().config
    asked.clear()
    transaction.ensure_writable(config, ENFORCED)
    transaction.ensure_writable(config, ENFORCED)
    transaction.ensure_writable(config, frozenset())
    transaction.ensure_writable(config, ENFORCED)
    assert asked == ["writable", "writable"]


def test_new_metadata_is_a_new_future() -> None:
    table = Table.create(f"memory://{uuid.uuid4()}", ROWS.schema)
    transaction = table.begin()
    snapshot = transaction.existing()
    assert prepare.future_config(transaction) is snapshot.config
    transaction.set_metadata(prepare.with_enablement(snapshot.config, 3, 4).metadata)
    first = prepare.future_config(transaction)
    assert first.metadata.configuration["delta.inCommitTimestampEnablementVersion"] == "3"
    assert prepare.future_config(transaction) is first
