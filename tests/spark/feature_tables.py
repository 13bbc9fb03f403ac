"""Tables with a feature in the protocol of another writer, and the expected behavior of a session of Spark Connect."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from tahoe.api.table import Table
from tahoe.protocol.features import COORDINATED, FEATURES, Use

__all__ = ["FEATURES_ON_CONNECT", "SAMPLE", "features_on_connect", "table_with", "tables_with"]

SAMPLE = ("deletionVectors", "catalogManaged", "collations")
"""One that is read and written, one that needs a coordinator, one that is read alone: each run looks at them on a server of Spark Connect."""

FEATURES_ON_CONNECT = """
import os, re
def outcome(step):
    try:
        return step()
    except Exception as error:
        return re.search("DELTA_[A-Z_]+", str(error)).group()
folder = sys.argv[3]
for feature in sorted(os.listdir(folder)):
    place = os.path.join(folder, feature)
    read = outcome(lambda: [row.id for row in spark.read.format("delta").load(place).collect()])
    wrote = outcome(lambda: spark.range(5, 6).write.format("delta").mode("append").save(place))
    print("= feature", feature, read, wrote)
"""
"""A piece of a program that has a session ``spark``; its third argument is the folder of the tables."""


def table_with(path: Path, feature: str) -> Table:
    """A table of which another writer says that it has the feature."""
    table = Table.create(path, pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    protocol = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["appendOnly", "invariants", feature, "domainMetadata"],
    }
    if FEATURES[feature].reader:
        protocol |= {"minReaderVersion": 3, "readerFeatures": [feature]}
    (path / "_delta_log" / f"{2:020d}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    return Table(path)


def tables_with(folder: Path, features: Iterable[str]) -> str:
    """A folder of such tables, each under its feature's name."""
    for feature in features:
        table_with(folder / feature, feature)
    return str(folder)


def features_on_connect(folder: Path, features: Iterable[str]) -> list[str]:
    """The expected output of the program; its written files are checked here."""
    lines = []
    for feature in sorted(features):
        row = FEATURES[feature]
        if feature in COORDINATED:  # and none is named there
            blocked = "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"
            lines.append(f"= feature {feature} {blocked} {blocked}")
            continue
        read = "[1]" if row.supports(Use.READ) else "DELTA_UNSUPPORTED_FEATURES_FOR_READ"
        wrote = (
            None if row.supports(Use.WRITE) else f"DELTA_UNSUPPORTED_FEATURES_FOR_{'WRITE' if row.supports(Use.READ) else 'READ'}"
        )
        lines.append(f"= feature {feature} {read} {wrote}")
        if row.supports(Use.READ):
            actual = sorted(Table(folder / feature).to_arrow()["id"].to_pylist())
            assert actual == ([1, 5] if row.supports(Use.WRITE) else [1]), feature
    return lines
