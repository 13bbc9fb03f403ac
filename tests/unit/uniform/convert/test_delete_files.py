"""Deletion vectors as delete files: any history of them is converted exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from tahoe.base.exceptions import Unsupported
from tahoe.protocol.actions import DeletionVectorDescriptor
from tahoe.testing.iceberg_verifier import dead_positions, newest_document, verify
from tahoe.testing.uniform_log import V2_DELETES, V3, DeltaLog
from tahoe.uniform.convert import manifest_policy
from tahoe.uniform.formats import metadata
from tests.sampling import examples


@pytest.fixture
def log() -> DeltaLog:
    return DeltaLog()


DEAD = st.sets(st.integers(0, 9)).map(BitMap64)


MARKS = st.lists(
    st.one_of(
        st.tuples(st.just("mark"), st.dictionaries(st.integers(0, 7), DEAD, max_size=4)),
        st.tuples(st.just("toggle"), st.sets(st.integers(0, 7), max_size=4), DEAD),
        st.tuples(st.just("convert"), st.booleans()),
    ),
    max_size=14,
)


@settings(max_examples=examples(30))
@given(MARKS, st.sampled_from([V2_DELETES, V3]), st.booleans())
def test_any_history_of_vectors_is_converted_exactly(steps, properties, per_commit):
    """Vectors appear, grow, shrink and disappear; files toggle between live and deleted, with or without a vector."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_policy, "LEAST_ENTRIES", 3)
        patch.setattr(manifest_policy, "MAX_SMALL", 2)
        log = DeltaLog(
            configuration={**properties, "delta.universalFormat.config.iceberg.snapshot-per-commit": str(per_commit).lower()}
        )
        live: dict[str, BitMap64] = {}
        for step in steps:
            if step[0] == "convert":
                log.convert(rebuild=step[1])
            elif step[0] == "mark":
                marks = {f"{'abc'[n % 3]}{n}": positions for n, positions in step[1].items()}
                marks = {
                    path: (live[path], positions) for path, positions in marks.items() if live.get(path, positions) != positions
                }
                log.mark(marks)
                live |= {path: positions for path, (_, positions) in marks.items()}
            else:
                touched = sorted(f"{'abc'[n % 3]}{n}" for n in step[1])
                log.commit(
                    *(log.remove(path, vector=live[path]) for path in touched if path in live),
                    *(log.add(path, vector=step[2]) for path in touched if path not in live),
                )
                for path in touched:
                    if live.pop(path, None) is None:
                        live[path] = step[2]
        log.convert()
        assert verify(log.store) == log.version
        current = metadata.current_snapshot(newest_document(log.store))
        shown = {url.rpartition("/")[2]: BitMap64(positions) for url, positions in dead_positions(log.store, current).items()}
        assert shown == {path: positions for path, positions in live.items() if positions}


def test_a_file_with_a_deletion_vector_stops_the_conversion_and_is_named(log):
    log.change(["a1"])
    log.convert()
    log.commit(replace(log.add("b1"), deletion_vector=DeletionVectorDescriptor("i", "x", 1, 1)))
    with pytest.raises(Unsupported, match="b1 has a deletion vector"):
        log.convert()
    assert newest_document(log.store)["properties"]["delta-version"] == "1"
