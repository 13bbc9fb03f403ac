"""Extra `openlineage`: each commit is written to a file of OpenLineage's client."""

import json
import os
from pathlib import Path

os.environ |= {
    "TAHOE_OPENLINEAGE": "true",
    "OPENLINEAGE__TRANSPORT__TYPE": "file",
    "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": "lineage.json",
    "OPENLINEAGE__TRANSPORT__APPEND": "true",
}

import pyarrow as pa

import tahoe
from tahoe.observe.lineage_queue import LINEAGE_QUEUE

tahoe.Table.create("t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2, 3]}))
LINEAGE_QUEUE.drain(60)
events = [json.loads(line) for line in Path("lineage.json").read_text().splitlines()]
assert [event["eventType"] for event in events].count("COMPLETE") == 2, events
