"""Every store passes the contract."""

from __future__ import annotations

import urllib.request
import uuid
from pathlib import Path

import pytest

from tahoe.store.local_store import LocalLogStore
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import ObjectLogStore, open_store
from tahoe.testing.store_suite import LogStoreContract


class TestLocalStore(LogStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LogStore:
        store = open_store(tmp_path / "table")
        assert isinstance(store, LocalLogStore)
        return store


class TestLocalStoreThatSyncs(LogStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LogStore:
        return open_store(tmp_path / "table", {"fsync": "true"})


class TestMemoryStore(LogStoreContract):
    @pytest.fixture
    def store(self, memory_url: str) -> LogStore:
        store = open_store(memory_url)
        assert isinstance(store, ObjectLogStore)
        return store


class TestS3Store(LogStoreContract):
    @pytest.fixture
    def store(self, s3_url: str, s3_options: dict[str, str]) -> LogStore:
        return open_store(s3_url, s3_options)


class TestS3StoreAtTheRootOfABucket(LogStoreContract):
    @pytest.fixture
    def store(self, s3_options: dict[str, str]) -> LogStore:
        bucket = f"bucket-{uuid.uuid4()}"
        request = urllib.request.Request(f"{s3_options['aws_endpoint']}/{bucket}", method="PUT")
        urllib.request.urlopen(request).close()
        return open_store(f"s3://{bucket}", s3_options)
