"""Stores of buckets sent to another process."""

from __future__ import annotations

import pickle
import sys

import pytest

from tahoe.base.exceptions import Unsupported
from tahoe.store.object_store import open_store


def test_a_bucket_s_store_is_reopened_in_the_receiving_process() -> None:
    store = open_store("s3://bucket/t", {"aws_region": "r"})
    assert pickle.loads(pickle.dumps(store)).url == "s3://bucket/t"


def test_the_error_without_obstore_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    content = pickle.dumps(open_store("s3://bucket/t", {"aws_region": "r"}))
    monkeypatch.delitem(sys.modules, "tahoe.store.object_store")
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(Unsupported, match=r"lacks the package obstore.*s3://bucket/t") as error:
        pickle.loads(content)
    assert error.value.code == "TAHOE_NO_OBSTORE"
