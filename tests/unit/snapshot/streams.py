"""Batches, and the threads that read ahead."""

from __future__ import annotations

import threading
import time

import pyarrow as pa


def batch(number, rows=10):
    return pa.record_batch({"n": pa.array([number] * rows, pa.int64())})


def threads_of_ours():
    return [item for item in threading.enumerate() if item.name == "tahoe-read-ahead"]


def no_thread_is_left():
    deadline = time.monotonic() + 120
    while threads_of_ours() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not threads_of_ours()
