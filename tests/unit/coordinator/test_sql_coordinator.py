"""A coordinator over both databases: its answers, and that one of several concurrent writers wins."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tahoe.base.exceptions import StorageFailure
from tahoe.coordinator import sql_database
from tahoe.coordinator.coordinator import Managed, StagedCommit
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.store.log_store import Created, Exists, Refused, Unanswered
from tests.postgresql import postgresql_server


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    with postgresql_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.getfixturevalue("postgresql")) if request.param == "postgresql" else f"sqlite:///{tmp_path}/c.db"


@pytest.fixture
def table() -> str:
    return f"file:///{uuid.uuid4()}"


def staged(table: str, version: int, name: str = "a") -> StagedCommit:
    return StagedCommit(table, version, f"{version:020d}.{name}.json", 10, 20)


def adopted(url: str, *tables: str, version: int = 0) -> SqlCoordinator:
    coordinator = SqlCoordinator(url)
    for table in tables:
        coordinator.expect(table, version, "mine")
        coordinator.adopt(table, version)
    return coordinator


def test_a_table_is_expected_then_managed_then_forgotten(url: str, table: str) -> None:
    coordinator = SqlCoordinator(url)
    assert coordinator.managed([table]) == {}
    coordinator.expect(table, 3, "mine")
    coordinator.expect(table, 3, "mine")
    coordinator.expect(table, 3, "another's")
    coordinator.expect(table, 5, "mine")
    assert coordinator.managed([table, "another"]) == {
        table: Managed(None, expected=((3, "another's"), (3, "mine"), (5, "mine")))
    }
    assert isinstance(coordinator.ratify([staged(table, 4)]), Exists), "nothing is ratified before it is adopted"
    coordinator.adopt(table, 5)
    coordinator.adopt(table, 3)  # a late call changes nothing
    coordinator.expect(table, 7, "mine")
    assert SqlCoordinator(url).managed([table]) == {table: Managed(5)}
    coordinator.forget(table)
    assert coordinator.managed([table]) == {}


def test_only_the_next_version_is_ratified_and_only_once(url: str, table: str) -> None:
    coordinator = adopted(url, table)
    assert isinstance(coordinator.ratify([staged(table, 2)]), Exists)
    assert isinstance(coordinator.ratify([staged(table, 1, "first")]), Created)
    assert isinstance(coordinator.ratify([staged(table, 1, "second")]), Exists)
    assert coordinator.managed([table]) == {table: Managed(1, {1: staged(table, 1, "first")})}


def test_published_commits_are_forgotten_and_the_last_version_stays(url: str, table: str) -> None:
    coordinator = adopted(url, table)
    for version in (1, 2, 3):
        assert isinstance(coordinator.ratify([staged(table, version)]), Created)
    coordinator.published(table, 9)  # unknown versions are ignored
    assert list(coordinator.managed([table])[table].commits) == [1, 2, 3]
    coordinator.published(table, 2)
    assert coordinator.managed([table]) == {table: Managed(3, {3: staged(table, 3)})}


def test_commits_to_two_tables_are_ratified_together_or_not_at_all(url: str, table: str) -> None:
    other, third = f"{table}/b", f"{table}/c"
    coordinator = adopted(url, table, other, third)
    assert isinstance(coordinator.ratify([staged(table, 1), staged(other, 2)]), Exists)
    assert isinstance(coordinator.ratify([staged(other, 2), staged(table, 1)]), Exists)
    assert isinstance(coordinator.ratify([staged(table, 1)], {third: 1}), Exists), "a table that was read is at another version"
    assert coordinator.managed([table, other]) == {table: Managed(0), other: Managed(0)}
    assert isinstance(coordinator.ratify([staged(table, 1), staged(other, 1)], {third: 0}), Created)
    assert [state.last_version for state in coordinator.managed([table, other, third]).values()].count(1) == 2


def test_one_of_many_concurrent_writers_wins_each_version_without_deadlock(url: str, table: str) -> None:
    """Each wants both tables, and names them in a different order."""
    tables = [table, f"{table}/b"]
    adopted(url, *tables)

    def win(number: int) -> int:
        coordinator, won = SqlCoordinator(url), 0
        for version in range(1, 9):
            order = tables if number % 2 else tables[::-1]
            won += isinstance(coordinator.ratify([staged(candidate, version, str(number)) for candidate in order]), Created)
        return won

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(win, range(4))) <= 8
    state = SqlCoordinator(url).managed(tables)
    assert state[tables[0]].last_version == state[tables[1]].last_version
    pairs = zip(state[tables[0]].commits.values(), state[tables[1]].commits.values(), strict=True)
    assert all(candidate.file == other.file for candidate, other in pairs), "two transactions each won one of the tables"


def test_coordinators_of_one_database_are_equal_and_cannot_be_pickled(url: str) -> None:
    assert SqlCoordinator(url) == SqlCoordinator(url) != SqlCoordinator("sqlite:///another.db")
    assert len({SqlCoordinator(url), SqlCoordinator(url)}) == 1
    with pytest.raises(TypeError, match="cannot be sent to another process"):
        pickle.dumps(SqlCoordinator(url))


def test_a_client_that_stalls_in_a_transaction_does_not_block_others_forever(
    url: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiting client learns that nothing was ratified; PostgreSQL then aborts the stalled transaction, and its commit fails."""
    monkeypatch.setattr(sql_database, "_LONGEST_WAIT_SECONDS", 1)
    adopted(url, table)
    stalled, other = SqlCoordinator(url), SqlCoordinator(url)
    database = stalled._database
    database._open()
    assert database._execute(("UPDATE tahoe_tables SET last_version = 1 WHERE url = ?", (table,))).rowcount == 1
    assert other.managed([table])[table].last_version == 0, "readers do not wait"
    if url.startswith("sqlite"):
        assert isinstance(other.ratify([staged(table, 1)]), Refused)
        database._connection.rollback()
    outcome = other.ratify([staged(table, 1)])
    while not isinstance(outcome, Created):
        assert isinstance(outcome, Refused)
        outcome = other.ratify([staged(table, 1)])
    if not url.startswith("sqlite"):
        assert isinstance(database.commit([]), Refused | Unanswered)
    assert stalled.managed([table])[table].last_version == 1


def test_a_url_with_its_own_options_keeps_them(postgresql: str) -> None:
    database = sql_database.open_database(f"{postgresql}&options=-c%20statement_timeout%3D77s&keepalives_count=9")
    assert database.rows("SHOW statement_timeout", ()) == [("77s",)]
    assert sql_database.open_database(postgresql).rows("SHOW statement_timeout", ()) == [("10s",)]
    assert sql_database.open_database(postgresql).rows("SHOW idle_in_transaction_session_timeout", ()) == [("10s",)]


def test_moving_a_table_moves_its_state(url: str, table: str) -> None:
    coordinator, there = adopted(url, table, version=3), f"{table}-there"
    coordinator.ratify([staged(table, 4)])
    coordinator.move(table, there)
    coordinator.move(table, there)  # nothing is known of the old URL any more
    state = coordinator.managed([table, there])
    assert list(state) == [there]
    assert (state[there].last_version, [commit.file for commit in state[there].commits.values()]) == (4, [staged(table, 4).file])
    assert isinstance(coordinator.ratify([staged(table, 5)]), Exists), "a writer to the old URL commits nothing"
    adopted(url, table)
    with pytest.raises(StorageFailure):
        coordinator.move(there, table)
    assert [coordinator.managed([url_of])[url_of].last_version for url_of in (table, there)] == [0, 4]
