"""Stores of buckets that were sent to another process."""

from __future__ import annotations

import pickle
import sys

import pytest

from tahoe.exceptions import Unsupported
from tahoe.store.object_store import open_store


def test_a_store_of_a_bucket_is_opened_by_the_process_that_it_was_sent_to() -> None:
    store = open_store("s3://bucket/t", {"aws_region": "r"})
    assert pickle.loads(pickle.dumps(store)).url == "s3://bucket/t"


def test_a_python_without_obstore_says_which_package_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    content = pickle.dumps(open_store("s3://bucket/t", {"aws_region": "r"}))
    monkeypatch.delitem(sys.modules, "tahoe.store.object_store")
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(Unsupported, match=r"lacks the package obstore.*s3://bucket/t") as error:
        pickle.loads(content)
    assert error.value.code == "TAHOE_NO_OBSTORE"
