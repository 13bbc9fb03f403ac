"""The table of docs/features.md with Spark: what it says of Spark and of the portable data source, row by row."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.protocol.features import FEATURES
from tahoe.table import Table


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


@pytest.mark.parametrize("door", ["spark", "plain"])
def test_each_feature_is_read_and_written_or_refused(request, tmp_path, door):
    session = request.getfixturevalue(door)
    for number, (feature, row) in enumerate(FEATURES.items()):
        path = tmp_path / str(number)
        table_with(path, feature)
        if not row.readable:
            with pytest.raises(Exception, match=f"(?s)DELTA_UNSUPPORTED_FEATURES_FOR_READ.*{feature}"):
                session.read.format("delta").load(str(path)).collect()
            continue
        assert session.read.format("delta").load(str(path)).collect()[0].id == 1, feature
        write = session.range(5, 6).write.format("delta").mode("append")
        if row.writable:
            write.save(str(path))
            assert sorted(Table(path).to_arrow()["id"].to_pylist()) == [1, 5], feature
        else:
            with pytest.raises(Exception, match=f"(?s)DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.*{feature}"):
                write.save(str(path))
