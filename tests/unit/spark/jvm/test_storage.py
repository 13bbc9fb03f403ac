"""The hooks of a session's tables."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pytest

from tahoe.api.table import Table
from tahoe.spark.jvm import storage


def test_a_pickled_table_has_the_hooks_of_the_process_that_reads_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hooks = storage._COMMIT_HOOKS
    unpicklable = threading.Lock()  # as the SparkContext that a classic session's hook refers to
    monkeypatch.setattr(hooks, "after", lambda committed: unpicklable, raising=False)
    Table.create(tmp_path, {"id": "long"})
    table = Table(tmp_path, hooks=(hooks.follow,), compactor=hooks.compact)
    other = pickle.loads(pickle.dumps(table))
    assert other._more_hooks == (hooks.follow,)
    assert other.version() == 0
