"""The shared state of conversions has one owner: runtimes are independent, and the process's own finishes its work at exit."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from pyroaring import BitMap64

import tahoe
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import TahoeError
from tahoe.log.files.commits import read_commit
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import Call, Faults, FaultyStore, TracingStore
from tahoe.testing.uniform_log import V2_DELETES, DeltaLog
from tahoe.uniform.convert.conversion import DeltaSide
from tahoe.uniform.handle import UniformHandle
from tahoe.uniform.runtime import LastError, UniformRuntime

SECONDS = 120
"""Long enough that only a failing test times out."""


BEGUN_AT_EXIT = """
from threading import Event
from tahoe.api.process import UNIFORM_RUNTIME
at_exit, drain = Event(), UNIFORM_RUNTIME.queue.drain
def announced_drain(*arguments):
    at_exit.set()
    return drain(*arguments)
UNIFORM_RUNTIME.queue.drain = announced_drain
"""
"""`at_exit` is set when interpreter exit begins to wait, so work that waits for it cannot have finished earlier."""


def printed_by(program: str) -> tuple[str, str]:
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS, check=True)
    return completed.stdout, completed.stderr


def test_queued_work_is_finished_when_the_interpreter_exits():
    program = """
begun = Event()
def run(version):
    begun.set()
    at_exit.wait()
    print(version, flush=True)
UNIFORM_RUNTIME.queue.submit("t", run, 1)
begun.wait()
UNIFORM_RUNTIME.queue.submit("t", run, 2)
UNIFORM_RUNTIME.queue.submit("t", run, 3)
"""
    assert printed_by(BEGUN_AT_EXIT + program) == ("1\n3\n", "")


def test_work_finished_at_exit_may_use_several_threads():
    """Python refuses threads to hooks that run later."""
    program = """
from concurrent.futures import ThreadPoolExecutor
def run(version):
    at_exit.wait()
    with ThreadPoolExecutor(2) as pool:
        print(sum(pool.map(abs, [-version, version])), flush=True)
UNIFORM_RUNTIME.queue.submit("t", run, 4)
"""
    assert printed_by(BEGUN_AT_EXIT + program) == ("8\n", "")


def test_commits_by_a_thread_during_exit_are_converted_too():
    """The thread commits after exit has waited once."""
    program = """
from threading import Event, Thread
from tahoe.api.process import UNIFORM_RUNTIME
waited, drain = Event(), UNIFORM_RUNTIME.drain
def noted(*arguments):
    left = drain(*arguments)
    waited.set()
    return left
UNIFORM_RUNTIME.drain = noted
def commit():
    waited.wait()
    UNIFORM_RUNTIME.queue.submit("t", lambda version: print(version, flush=True), 7)
Thread(target=commit).start()
"""
    assert printed_by(program) == ("7\n", "")


# -- one owner -----------------------------------------------------------------------------------------------------------------


def test_runtimes_are_independent():
    here, there = UniformRuntime(), UniformRuntime()
    go_on = Event()
    here.queue.submit("t", lambda version: go_on.wait(SECONDS), 1)
    here.errors.put("t", LastError(1, "TAHOE_ERROR", "no"))
    assert here.drain(0.01, 0.0) == ["the conversion of t to Iceberg was not finished"]
    assert there.drain(SECONDS, SECONDS) == []
    assert there.errors.get("t") is None
    go_on.set()
    assert here.drain(SECONDS, SECONDS) == []


def test_a_conversion_changes_only_its_own_runtime():
    """A conversion with its own runtime leaves the process's runtime unchanged."""
    from tahoe.api.process import UNIFORM_RUNTIME

    log = DeltaLog()
    log.change(["a1"])
    runtime = UniformRuntime()
    UniformHandle(log.delta(), runtime).sync()
    (written,) = [name.name for name in log.store.walk("metadata") if name.name.startswith("metadata/snap-")]
    assert runtime.caches.lists.get(f"{log.store.url}/{written}") is not None
    assert UNIFORM_RUNTIME.caches.lists.get(f"{log.store.url}/{written}") is None


def test_no_function_of_the_package_changes_its_module():
    """Checks for `global` statements, and for empty collections at module level, which only a function could fill."""
    for path in sorted(Path(tahoe.__path__[0], "uniform").rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        assert not [node for node in ast.walk(module) if isinstance(node, ast.Global)], path
        for node in module.body:
            value = getattr(node, "value", None)
            assert not (isinstance(value, ast.Dict | ast.List | ast.Set) and not ast.unparse(value).strip("{}[]")), (
                path,
                node.lineno,
            )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_child_starts_with_a_fresh_runtime():
    program = """
import os, warnings
from threading import Event
from tahoe.api.process import UNIFORM_RUNTIME
warnings.simplefilter("ignore", DeprecationWarning)
started, go_on = Event(), Event()
UNIFORM_RUNTIME.queue.submit("t", lambda version: (started.set(), go_on.wait(100)), 1)
started.wait(100)
UNIFORM_RUNTIME.errors._lock.acquire()
child = os.fork()
if child == 0:
    print(UNIFORM_RUNTIME.queue.busy(), UNIFORM_RUNTIME.errors.get("t"), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(UNIFORM_RUNTIME.queue.busy(), flush=True)
go_on.set()
"""
    assert printed_by(program)[0].splitlines() == ["[] None", "['t']"]


# -- replay --------------------------------------------------------------------------------------------------------------------


class Waits(SeededClock):
    """Records the time slept."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        super().sleep(seconds)


FAULTS = Faults(answer_lost=0.1, answered_taken=0.1, request_lost=0.2, refused=0.3, read_failed=0.02, write_failed=0.03)


def replayed(seed: int) -> tuple[list[Call], list[float], list[str]]:
    """Return the storage calls, waits and outcomes of a history of conversions on a store that fails by a seed.

    Each table has the same URL: it appears in the manifests, whose names derive from their content.
    """
    store = open_store("memory://replay/t")
    for entry in list(store.walk()):
        store.delete(entry.name)
    log, clock, ends = DeltaLog(store, V2_DELETES), Waits(seed), []
    traced = TracingStore(FaultyStore(store, FAULTS, seed=seed))
    handle = UniformHandle(DeltaSide(traced, log.snapshot, partial(read_commit, traced), clock), UniformRuntime())
    for number in range(8):
        log.change([f"a{number}", f"b{number}"], [f"a{number - 1}"] if number else [])
        if number > 4:
            log.mark({f"b{number}": (None, BitMap64([1, number]))})
        try:
            ends.append(handle.sync(rebuild=number == 6).kind)
        except TahoeError as error:
            ends.append(f"{error.code}: {error.message}")
    return traced.calls, clock.slept, ends


@pytest.mark.parametrize("seed", range(5))
def test_two_conversions_replay_from_a_seed(seed):
    """The same seed, faults and clock give the same storage calls in the same order, the same waits and the same outcomes."""
    first = replayed(seed)
    assert replayed(seed) == first
    assert {"full", "incremental"} & set(first[2]), "some of them succeed"
    assert first[1], "something failed and was retried"


def test_the_order_of_calls_does_not_depend_on_hashes_of_text():
    """Python's string hashes differ between processes."""
    program = "from tests.unit.uniform.test_runtime import replayed; print(replayed(3))"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1] != ""
