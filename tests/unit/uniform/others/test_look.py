"""The table's folder at one moment: what is the newest metadata, and what is wrong with it."""

from __future__ import annotations

import pytest

from tahoe.exceptions import CorruptTable, ForeignWriter
from tahoe.testing.faulty_store import WrappedStore
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.others.look import look_at, newest_metadata, newest_number


def test_an_empty_folder_has_no_metadata() -> None:
    look = look_at(DeltaLog().store)
    assert (look.number, look.current(), newest_number(DeltaLog().store), newest_metadata(DeltaLog().store)) == (None,) * 4


def test_the_newest_is_the_one_of_the_highest_number() -> None:
    log = DeltaLog()
    for number in range(11):
        log.change([f"a{number}"])
        log.convert()
    look = look_at(log.store)
    assert look.number == newest_number(log.store) == 11, "and not 9, which comes last by its name"
    current = look.current()
    assert current is not None
    assert (current.version, current.location) == (11, f"{log.store.url}/metadata/v11.metadata.json")


@pytest.mark.parametrize(("data", "error"), [(b"{}", ForeignWriter), (b"no json", CorruptTable)])
def test_what_is_wrong_with_it_is_raised_when_it_is_asked_for(data: bytes, error: type[Exception]) -> None:
    log = DeltaLog()
    log.convert()
    log.store.put("metadata/v3.metadata.json", data)
    look = look_at(log.store)
    assert (look.number, look.newest) == (3, None)
    with pytest.raises(error, match="v3"):
        look.current()


def test_metadata_that_expires_between_the_listing_and_the_read_is_looked_for_again() -> None:
    log = DeltaLog()
    log.convert()

    class Expiring(WrappedStore):
        lists = 0

        def names_from(self, folder: str, start: str = "") -> list[str]:
            self.lists += 1
            return ["metadata/v9.metadata.json"] if self.lists == 1 else self.inner.names_from(folder, start)

        def _call(self, method, name, run):
            return run()

    store = Expiring(log.store)
    assert look_at(store).number == 0
    assert store.lists == 2
