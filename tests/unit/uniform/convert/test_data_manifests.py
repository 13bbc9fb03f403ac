"""Data manifests under changes, and the correctness of any history."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tahoe.protocol.actions import SetTransaction
from tahoe.testing.faulty_store import TracingStore
from tahoe.testing.iceberg_verifier import live_entries, newest_document, verify
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.convert import manifest_policy
from tahoe.uniform.convert.manifest_folder import ManifestFolder
from tahoe.uniform.formats import metadata
from tests.sampling import examples


@pytest.fixture
def log() -> DeltaLog:
    return DeltaLog()


@pytest.fixture
def small_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_policy, "LEAST_ENTRIES", 4)
    monkeypatch.setattr(manifest_policy, "MAX_SMALL", 3)


def manifests(log: DeltaLog) -> list[str]:
    """Return the paths of the current snapshot's manifests."""
    folder = ManifestFolder(log.store)
    return [
        manifest.path for manifest in folder.read_list(metadata.current_snapshot(newest_document(log.store))["manifest-list"])
    ]


def test_a_change_rewrites_only_the_manifests_it_touches(log, small_manifests):
    log.change([f"{letter}{i}" for letter in "abcde" for i in range(4)])
    log.convert()
    before = manifests(log)
    assert len(before) == 5, "each partition has a manifest of its own"
    log.change([], ["c2"])
    log.convert()
    after = manifests(log)
    assert len(set(before) & set(after)) == 4
    assert verify(log.store) == 2


def test_many_small_manifests_are_merged(log, small_manifests):
    log.convert()
    sizes = []
    for number in range(20):
        log.change([f"a{number:02d}"])
        log.convert()
        sizes.append(len(manifests(log)))
    assert max(sizes) <= 20 / 4 + 5
    verify(log.store)


def test_a_manifest_whose_files_are_all_gone_is_dropped(log, small_manifests):
    log.change(["a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4"])
    log.convert()
    log.change([], ["a1", "a2", "a3", "a4"])
    log.convert()
    log.change(["c1"])
    log.convert()
    verify(log.store)
    assert len(manifests(log)) == 2


def test_the_cost_of_a_small_commit_does_not_grow_with_the_table(small_manifests):
    def calls(files: int) -> int:
        log = DeltaLog()
        log.change([f"{'abcdefgh'[i % 8]}{i}" for i in range(files)])
        log.convert()
        log.change(["z1"])
        traced = TracingStore(log.store)
        log.convert(store=traced)
        return sum(call.name.startswith("metadata") for call in traced.calls)

    assert calls(8) == calls(200)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.lists(st.integers(0, 11), max_size=4), st.booleans()),
        st.tuples(st.just("convert"), st.booleans()),
        st.tuples(st.just("empty")),
    ),
    max_size=14,
)


@settings(max_examples=examples(60))
@given(STEPS, st.booleans())
def test_any_history_is_converted_exactly(steps, per_commit):
    """Files toggle between live and deleted, with conversions at arbitrary points."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_policy, "LEAST_ENTRIES", 3)
        patch.setattr(manifest_policy, "MAX_SMALL", 2)
        log = DeltaLog(configuration={"delta.universalformat.config.iceberg.snapshot-per-commit": str(per_commit).lower()})
        live: set[str] = set()
        for step in steps:
            if step[0] == "change":
                touched = {f"{'abc'[number % 3]}{number}" for number in step[1]}
                log.change(sorted(touched - live), sorted(touched & live), data_change=step[2])
                live ^= touched
            elif step[0] == "convert":
                log.convert(rebuild=step[1] and log.version % 3 == 0)
            else:
                log.commit(SetTransaction("app", log.version))
        log.convert()
        assert verify(log.store) == log.version
        document = newest_document(log.store)
        current = metadata.current_snapshot(document)
        assert {url.rpartition("/")[2] for url in live_entries(log.store, current)} == live
