"""Hostile requests of Iceberg clients: each is refused with its reason, changes no byte, and takes bounded time and memory.

A sample runs with the suite, all of `MUTATIONS` with `make soak`.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tests.attack.iceberg_mutations import MUTATIONS, Mutation
from tests.attack.iceberg_requests import Attempt, Victim, appended, created, deleted, in_partition, overwritten
from tests.attack.verdict import LIMIT_SECONDS
from tests.sampling import sampled

LEAST = 300
MOST_KIBIBYTES = 512 * 1024
"""The memory that one request may take."""


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Victim:
    return Victim.create(tmp_path_factory.mktemp("attack"))


def peak() -> int:
    """The greatest memory of this process so far, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("mutation", sampled(MUTATIONS, 16), ids=lambda mutation: mutation.name[:60])
def test_a_hostile_request_is_refused_and_changes_nothing(victim: Victim, mutation: Mutation) -> None:
    attempt = mutation.base(victim)
    mutation.mutate(attempt)
    written = attempt.write()
    try:
        before, memory, begin = victim.contents(), peak(), time.process_time()
        answer = attempt.send()
        seconds, memory = time.process_time() - begin, peak() - memory
        assert victim.contents() == before
    finally:
        for path in written:
            path.unlink()
    error = json.loads(answer.body)["error"]
    assert answer.status == error["code"] == mutation.status
    assert error["message"] and mutation.reason.lower() in error["message"].lower()
    assert seconds < LIMIT_SECONDS and memory < MOST_KIBIBYTES


def test_there_are_as_many_hostile_requests_as_required() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= LEAST


@pytest.mark.parametrize(
    ("base", "ids"),
    [
        (appended, [1, 2, 3, 10, 11, 12, 13, 14]),
        (overwritten, [20]),
        (deleted, [1, 3]),
        (in_partition, [4]),
        (created, []),
    ],
)
def test_the_request_is_valid_without_its_mutation(tmp_path: Path, base: Callable[[Victim], Attempt], ids: list[int]) -> None:
    attempt = base(Victim.create(tmp_path))
    attempt.write()
    assert attempt.send().status == 200
    assert sorted(tahoe.Table(attempt.folder).to_arrow()["id"].to_pylist()) == ids
    assert UNIFORM_RUNTIME.queue.drain(120)
