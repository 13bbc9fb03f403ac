"""Conversions in the background: one at a time, the newest wins, errors stay away from the writer."""

from __future__ import annotations

import logging
import subprocess
import sys
from threading import Event

from tahoe.uniform.convert.queue import ConversionQueue

SECONDS = 10


def test_while_one_runs_only_the_newest_waits():
    queue, started, go_on, done = ConversionQueue(), Event(), Event(), []

    def run(version: int) -> None:
        started.set()
        assert go_on.wait(SECONDS)
        done.append(version)

    queue.submit("t", run, 1)
    assert started.wait(SECONDS)
    for version in (2, 4, 3, 5, 4):
        queue.submit("t", run, version)
    assert queue.is_busy("t")
    assert not queue.drain(0.01)
    go_on.set()
    assert queue.drain(SECONDS)
    assert done == [1, 5]
    assert not queue.is_busy("t")


def test_tables_do_not_wait_for_each_other():
    queue, go_on, done = ConversionQueue(), Event(), Event()
    queue.submit("slow", lambda version: go_on.wait(SECONDS), 1)
    queue.submit("quick", lambda version: done.set(), 1)
    assert done.wait(SECONDS)
    assert queue.drain(SECONDS, "quick")
    assert queue.is_busy("slow")
    go_on.set()
    assert queue.drain(SECONDS)


def test_an_error_is_logged_with_its_version_and_the_next_job_runs(caplog):
    queue, done = ConversionQueue(), []

    def fail(version: int) -> None:
        raise RuntimeError("the disk is full")

    with caplog.at_level(logging.ERROR, "tahoe.uniform.convert.queue"):
        queue.submit("file:///t", fail, 41)
        assert queue.drain(SECONDS)
    assert "version 41 of file:///t" in caplog.text
    assert "the disk is full" in caplog.text
    queue.submit("file:///t", done.append, 42)
    assert queue.drain(SECONDS)
    assert done == [42]


def test_what_waits_is_finished_when_the_interpreter_exits():
    program = """
from time import sleep
from tahoe.uniform.convert.queue import QUEUE
def run(version):
    sleep(0.1)
    print(version, flush=True)
QUEUE.submit("t", run, 1)
sleep(0.02)
QUEUE.submit("t", run, 2)
QUEUE.submit("t", run, 3)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.split() == ["1", "3"]


def test_what_is_finished_at_the_exit_may_use_several_threads():
    """Python refuses them to what runs later."""
    program = """
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from tahoe.uniform.convert.queue import QUEUE
def run(version):
    sleep(0.2)
    with ThreadPoolExecutor(2) as pool:
        print(sum(pool.map(abs, [-version, version])), flush=True)
QUEUE.submit("t", run, 4)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert (found.stdout, found.stderr) == ("8\n", "")


def test_what_a_thread_commits_while_the_interpreter_exits_is_finished_too():
    program = """
from threading import Thread
from time import sleep
from tahoe.uniform.convert.queue import QUEUE
def commit():
    sleep(0.3)
    QUEUE.submit("t", lambda version: (sleep(0.2), print(version, flush=True)), 7)
Thread(target=commit).start()
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == "7\n"
