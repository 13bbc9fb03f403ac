"""The listing of the folder ``metadata``: the newest metadata, and the error for invalid metadata."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import CorruptTable, ForeignWriter
from tahoe.testing.faulty_store import WrappedStore
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.external.metadata_listing import list_metadata, newest_metadata, newest_number


def test_an_empty_folder_has_no_metadata() -> None:
    listing = list_metadata(DeltaLog().store)
    assert (listing.number, listing.current(), newest_number(DeltaLog().store), newest_metadata(DeltaLog().store)) == (None,) * 4


def test_the_newest_metadata_has_the_highest_number() -> None:
    log = DeltaLog()
    for number in range(11):
        log.change([f"a{number}"])
        log.convert()
    listing = list_metadata(log.store)
    assert listing.number == newest_number(log.store) == 11, "and not 9, which comes last by its name"
    current = listing.current()
    assert current is not None
    assert (current.version, current.location) == (11, f"{log.store.url}/metadata/v11.metadata.json")


@pytest.mark.parametrize(("data", "error"), [(b"{}", ForeignWriter), (b"no json", CorruptTable)])
def test_invalid_metadata_raises_on_access(data: bytes, error: type[Exception]) -> None:
    log = DeltaLog()
    log.convert()
    log.store.put("metadata/v3.metadata.json", data)
    listing = list_metadata(log.store)
    assert (listing.number, listing.newest) == (3, None)
    with pytest.raises(error, match="v3"):
        listing.current()


def test_metadata_that_expires_between_the_listing_and_the_read_is_listed_again() -> None:
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
    assert list_metadata(store).number == 0
    assert store.lists == 2
