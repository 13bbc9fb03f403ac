"""The contract of stores fails for a faulty store; `tests/unit/store/test_log_store.py` runs it on Tahoe's own."""

from __future__ import annotations

import pytest

from tahoe.store.log_store import Created, PutOutcome
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import WrappedStore
from tahoe.testing.store_suite import LogStoreContract


class Overwriting(WrappedStore):
    """Puts whether or not the name is taken."""

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        self.inner.put(name, data)
        return Created()


LAW = "test_a_free_name_is_created_and_a_taken_one_is_left_as_it_is"


def test_a_store_that_overwrites_objects_breaks_the_contract(memory_url: str) -> None:
    store = open_store(memory_url)
    getattr(LogStoreContract(), LAW)(store)
    with pytest.raises(AssertionError):
        getattr(LogStoreContract(), LAW)(Overwriting(open_store(memory_url + "-of-another")))
