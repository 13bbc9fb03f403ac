"""Random histories in which Iceberg clients make earlier snapshots current again: each snapshot stays readable until it expires."""

from __future__ import annotations

import random

import pytest
from pyroaring import BitMap64

from tahoe.testing.iceberg_verifier import named_files, newest_document, verify
from tahoe.testing.uniform_log import V2_DELETES, V3, DeltaLog
from tahoe.uniform.convert.converter import Converter
from tests.sampling import sampled

RETENTION = {"delta.deletedFileRetentionDuration": "interval 10000 seconds"}
Files = dict[str, BitMap64 | None]


class Histories:
    """A table whose versions are converted one by one, or several at once.

    Args:
        dice: decides about every step.
    """

    def __init__(self, dice: random.Random, configuration: dict[str, str]) -> None:
        self.log = DeltaLog(configuration={**RETENTION, **configuration})
        self.versions: list[Files] = [{}]
        self.rollbacks = 0
        self._dice = dice
        self._now_ms = 1_700_000_000_000

    def step(self) -> None:
        """Commit a change of files or vectors, or a rollback, and perhaps convert it."""
        choice, files = self._dice.random(), self.versions[-1]
        earlier = self._earlier()
        if earlier and choice < 0.35:
            self._roll_back(self._dice.choice(earlier))
        elif files and choice < 0.6:
            self._commit({path: self._marked(vector) for path, vector in files.items()})
        else:
            gone = set(self._dice.sample(sorted(files), k=len(files) // 3))
            self._commit(
                {**{path: files[path] for path in files.keys() - gone}, f"{'ab'[len(gone) % 2]}{self.log.version}": None}
            )
        self._now_ms += self._dice.randrange(2_500_000)
        if self._dice.random() < 0.8:
            target = self.log.snapshot()
            target.__dict__["timestamp_ms"] = self._now_ms
            Converter(self.log.delta(), self.log.caches).convert(target)

    def _marked(self, vector: BitMap64 | None) -> BitMap64 | None:
        if self._dice.random() < 0.6:
            return vector
        return BitMap64([*(vector or ()), self._dice.randrange(10)])

    def _earlier(self) -> list[dict]:
        """Return the snapshots that a client can make current: none while the newest version is not converted."""
        document = newest_document(self.log.store) if self.log.version else None
        if document is None or int(document["properties"]["delta-version"]) < self.log.version:
            return []
        return [each for each in document["snapshots"] if each["snapshot-id"] != document["current-snapshot-id"]]

    def _roll_back(self, snapshot: dict) -> None:
        self.rollbacks += 1
        version = int(snapshot["summary"]["delta-version"])
        parameters = {"version": version, "client": "test", "snapshotId": str(snapshot["snapshot-id"])}
        self._commit(self.versions[version], {"operation": "RESTORE", "operationParameters": parameters})

    def _commit(self, files: Files, info: dict | None = None) -> None:
        before = self.versions[-1].items()
        removes = [self.log.remove(path, vector=vector) for path, vector in before if (path, vector) not in files.items()]
        adds = [self.log.add(path, vector=vector) for path, vector in files.items() if (path, vector) not in before]
        self.log.commit(*removes, *adds, info=info)
        self.versions.append(files)


@pytest.mark.parametrize("form", ["vectors", "position deletes"])
@pytest.mark.parametrize("seed", sampled(range(40), 20))
def test_snapshots_of_tables_with_rollbacks_stay_readable(form: str, seed: int) -> None:
    histories = Histories(random.Random(seed), V3 if form == "vectors" else V2_DELETES)
    for number in range(40):
        histories.step()
        if number % 4 == 3:
            verify(histories.log.store, is_linear=False)
    assert histories.rollbacks > 0
    store = histories.log.store
    stored = {entry.name.removeprefix("metadata/") for entry in store.walk("metadata")}
    suffixes = (".avro", ".parquet", ".puffin")
    assert {name for name in stored if name.endswith(suffixes)} == named_files(store), (
        "files of expired snapshots are deleted, no others"
    )
