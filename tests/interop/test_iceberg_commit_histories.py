"""Random histories with writers on both sides: at every Delta version and in every Iceberg snapshot the rows are the model's.

Columns are renamed, dropped and added again under their old names, so a file that is read by the wrong name shows values where the model
has NULL, or NULL where the model has values.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import tahoe
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.interop.engines import canonical, read_deltalake
from tests.sampling import sampled

STEPS = 14
PARTS = ("p", "q r", None)
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "part", StringType()), NestedField(3, "a", StringType()))
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))
UNIFORM = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    "delta.columnMapping.mode": "name",
    # The Iceberg side has a snapshot for each version, so that both can be compared.
    "delta.universalFormat.config.iceberg.snapshot-per-commit": "true",
}

VECTORS = {"delta.enableDeletionVectors": "true", "delta.universalFormat.config.iceberg.deletes": "position"}


class History:
    """A table with its model: rows as dictionaries, and the rows of each version."""

    def __init__(self, root: Path, seed: int) -> None:
        self.drawn = random.Random(seed)
        self.client = LocalClient(writable_catalog(root))
        self.path = root / "t"
        is_partitioned = self.drawn.random() < 0.5
        if self.drawn.random() < 0.5:
            spec = SPEC if is_partitioned else PartitionSpec()
            properties = {"snapshot-per-commit": "true"}
            self.client.create_table("default.t", SCHEMA, partition_spec=spec, properties=properties)
        else:
            part = ["part"] if is_partitioned else []
            tahoe.Table.create(
                self.path, SCHEMA.as_arrow(), partition_by=part, properties={**UNIFORM, **self.drawn.choice([{}, VECTORS])}
            )
        self.rows: list[dict[str, Any]] = []
        self.columns = ["id", "part", "a"]
        self.versions: dict[int, list[dict[str, Any]]] = {0: []}
        self.columns_of = {0: list(self.columns)}
        self.names = iter(range(1000))
        self.steps: list[str] = []

    @property
    def delta(self) -> tahoe.Table:
        return tahoe.Table(self.path)

    @property
    def iceberg(self) -> IcebergTable:
        return self.client.load_table("default.t")

    def step(self) -> None:
        change: Callable[[], None] = self.drawn.choice(
            [
                *[self.append_iceberg, self.append_delta, self.delete_iceberg, self.delete_delta, self.overwrite, self.upsert]
                * 2,
                *[
                    self.update_delta,
                    self.optimize,
                    self.rename,
                    self.drop,
                    self.add,
                    self.roll_back,
                    self.restore,
                    self.merge,
                    self.transaction,
                ],
            ]
        )
        self.steps.append(change.__name__)
        change()
        version = self.delta.version()
        for each in range(max(self.versions) + 1, version):
            self.versions[each] = []  # a version between two of one change; there are none at present
        self.versions[version], self.columns_of[version] = [dict(row) for row in self.rows], list(self.columns)
        assert canonical(self.table_of(self.rows)) == canonical(self.delta.to_arrow()), self.steps
        assert canonical(self.table_of(self.rows)) == canonical(self.iceberg.scan().to_arrow()), self.steps

    def new_rows(self) -> list[dict[str, Any]]:
        texts = dict.fromkeys(self.columns)
        return [
            {
                **{name: self.drawn.choice(["x", "y", None]) for name in texts},
                "id": self.drawn.randrange(40),
                "part": self.drawn.choice(PARTS),
            }
            for _ in range(self.drawn.randint(1, 4))
        ]

    def table_of(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        schema = pa.schema([(name, pa.int64() if name == "id" else pa.string()) for name in self.columns])
        return pa.Table.from_pylist(list(rows), schema=schema)

    def append_iceberg(self) -> None:
        new = self.new_rows()
        self.iceberg.append(self.table_of(new))
        self.rows += new

    def append_delta(self) -> None:
        new = self.new_rows()
        self.delta.append(self.table_of(new))
        self.rows += new

    def delete_iceberg(self) -> None:
        least = self.drawn.randrange(40)
        self.iceberg.delete(f"id >= {least} and id < {least + 8}")
        self.rows = [row for row in self.rows if not least <= row["id"] < least + 8]

    def delete_delta(self) -> None:
        least = self.drawn.randrange(40)
        self.delta.delete(f"id >= {least} and id < {least + 8}")
        self.rows = [row for row in self.rows if not least <= row["id"] < least + 8]

    def overwrite(self) -> None:
        new, least = self.new_rows(), self.drawn.randrange(40)
        self.iceberg.overwrite(self.table_of(new), f"id >= {least}")
        self.rows = [row for row in self.rows if row["id"] < least] + new

    def upsert(self) -> None:
        table = self.iceberg
        snapshot = table.current_snapshot()
        is_behind = snapshot is None or snapshot.schema_id != table.schema().schema_id
        # PyIceberg refuses to match one row with several, and reads the table with the schema of its newest snapshot.
        if is_behind or len({row["id"] for row in self.rows}) < len(self.rows):
            return self.append_iceberg()
        new = {row["id"]: row for row in self.new_rows()}
        table.upsert(self.table_of(list(new.values())), ["id"])
        self.rows = [row for row in self.rows if row["id"] not in new] + list(new.values())
        return None

    def transaction(self) -> None:
        """Delete and append rows in one commit of an Iceberg client."""
        new, least = self.new_rows(), self.drawn.randrange(40)
        with self.iceberg.transaction() as transaction:
            transaction.delete(f"id >= {least} and id < {least + 8}")
            transaction.append(self.table_of(new))
        self.rows = [row for row in self.rows if not least <= row["id"] < least + 8] + new

    def merge(self) -> None:
        new = {row["id"]: row for row in self.new_rows()}
        merge = self.delta.merge(
            self.table_of(list(new.values())), "target.id = source.id", source_alias="source", target_alias="target"
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        old = [row["id"] for row in self.rows]
        self.rows = [new.get(row["id"], row) for row in self.rows] + [row for number, row in new.items() if number not in old]

    def update_delta(self) -> None:
        name, least = self.drawn.choice(self.columns[1:]), self.drawn.randrange(40)
        self.delta.update({name: "'new'"}, f"id < {least}")
        self.rows = [{**row, name: "new"} if row["id"] < least else row for row in self.rows]

    def optimize(self) -> None:
        self.delta.optimize()

    def roll_back(self) -> None:
        """Make an earlier snapshot current through Iceberg: its rows and columns are those of its version."""
        table = self.iceberg
        earlier = [each for each in table.snapshots() if each != table.current_snapshot()]
        if not earlier:
            return self.append_iceberg()
        chosen = self.drawn.choice(earlier)
        table.manage_snapshots().set_current_snapshot(chosen.snapshot_id).commit()
        assert self.iceberg.current_snapshot() == chosen, self.steps
        assert len(self.iceberg.snapshots()) == len(table.snapshots()), self.steps
        return self._set_model(int(chosen.summary["delta-version"]))

    def restore(self) -> None:
        version = self.drawn.choice(sorted(self.versions))
        if version == self.delta.version():
            return self.append_delta()
        self.delta.restore(version)
        return self._set_model(version)

    def _set_model(self, version: int) -> None:
        self.rows, self.columns = [dict(row) for row in self.versions[version]], list(self.columns_of[version])

    def rename(self) -> None:
        old, new = self.drawn.choice(self.columns[1:]), f"c{next(self.names)}"
        if old == "part":
            return self.append_iceberg()
        if self.drawn.random() < 0.5:
            self.delta.rename_column(old, new)
        else:
            with self.iceberg.update_schema() as update:
                update.rename_column(old, new)
        self.columns = [new if name == old else name for name in self.columns]
        self.rows = [{new if name == old else name: value for name, value in row.items()} for row in self.rows]
        return None

    def drop(self) -> None:
        own = [name for name in self.columns if name not in ("id", "part")]
        if not own:
            return self.add()
        name = self.drawn.choice(own)
        if self.drawn.random() < 0.5:
            self.delta.drop_columns(name)
        else:
            with self.iceberg.update_schema(allow_incompatible_changes=True) as update:
                update.delete_column(name)
        self.columns.remove(name)
        self.rows = [{key: value for key, value in row.items() if key != name} for row in self.rows]
        return None

    def add(self) -> None:
        name = next(name for name in ("a", "b", "c", "d", "e", "f") if name not in self.columns)
        if self.drawn.random() < 0.5:
            self.delta.add_columns({name: "string"})
        else:
            with self.iceberg.update_schema() as update:
                update.add_column(name, StringType())
        self.columns.append(name)
        self.rows = [{**row, name: None} for row in self.rows]

    def check_every_version(self) -> None:
        """Compare each version with the model, by values: columns are renamed later, which older snapshots show by their own schema."""
        document = self.client._here._warehouse.load(("default",), "t").document
        snapshots = {int(each["summary"]["delta-version"]): each["snapshot-id"] for each in document["snapshots"]}
        for version, rows in self.versions.items():
            expected = sorted(sorted(map(str, row.values())) for row in rows)
            actual = self.delta.snapshot(version).scan().to_arrow().to_pylist()
            assert sorted(sorted(map(str, row.values())) for row in actual) == expected, (version, self.steps)
            if version in snapshots:
                shown = self.iceberg.scan(snapshot_id=snapshots[version]).to_arrow().to_pylist()
                assert sorted(sorted(map(str, row.values())) for row in shown) == expected, (version, self.steps)


@pytest.mark.filterwarnings("ignore:Delete operation did not match")
@pytest.mark.parametrize("seed", sampled(range(1000), 125))
def test_rows_are_the_model_s_at_every_version_and_snapshot(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path, seed)
    for _ in range(STEPS):
        history.step()
    history.check_every_version()
    assert canonical(read_deltalake(str(history.path))) == canonical(history.table_of(history.rows))
