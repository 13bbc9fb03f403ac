"""Who waits is known by name, within the process and by listings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tahoe.log.intents import FOLDER, PREFIX, Intent, announce, forget, intent_name, notice, standing
from tahoe.store.log_store import Entry, LogStore
from tahoe.store.object_store import open_store


@pytest.fixture
def store(memory_url: str) -> Iterator[LogStore]:
    store = open_store(memory_url)
    yield store
    notice(store, [])
    for intent in standing(store.url):
        forget(store.url, intent.name)


def listed(name: str, modified_ms: int) -> Entry:
    return Entry(f"{PREFIX}{name}", 0, modified_ms)


def test_the_oldest_goes_first_and_one_that_no_listing_has_shown_goes_last(store: LogStore) -> None:
    announce(store.url, f"{PREFIX}mine")
    notice(store, [listed("b", 5), listed("a", 5), listed("c", 3), Entry("_delta_log/00.json", 1, 1)])
    assert [intent.name.removeprefix(PREFIX) for intent in standing(store.url)] == ["c", "a", "b", "mine"]
    assert [intent.is_of_this_process for intent in standing(store.url)] == [False, False, False, True]


def test_intents_missing_from_a_listing_are_gone_unless_this_process_made_them(store: LogStore) -> None:
    announce(store.url, f"{PREFIX}mine")
    notice(store, [listed("other", 1), listed("mine", 2)])
    assert standing(store.url)[1] == Intent(f"{PREFIX}mine", 2, is_of_this_process=True)
    notice(store, [])
    assert [intent.name for intent in standing(store.url)] == [f"{PREFIX}mine"]
    forget(store.url, f"{PREFIX}mine")
    assert standing(store.url) == []


def test_more_than_a_hundred_are_rubbish(store: LogStore) -> None:
    notice(store, [listed(f"{number:03d}", number) for number in range(300)])
    assert len(standing(store.url)) == 100


def test_an_intent_lies_where_listings_are_cheap() -> None:
    class Cheap:
        asks_cheaply = True

    class Dear:
        asks_cheaply = False

    assert intent_name(Cheap(), "x") == f"{FOLDER}/x" and intent_name(Dear(), "x") == f"{PREFIX}x"
