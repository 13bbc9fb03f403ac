"""No extra: a table is created, changed and read, in a process without Spark; the installed files are where they belong."""

import importlib.metadata
import sys
from pathlib import Path

import pyarrow as pa

import tahoe
import tahoe_startup

table = tahoe.Table.create("t", pa.schema([("id", pa.int64()), ("name", pa.string())]))
table.append(pa.table({"id": [1, 2], "name": ["one", "two"]}))
table.delete("id = 1")
assert tahoe.Table("t").to_arrow().to_pylist() == [{"id": 2, "name": "two"}]
assert table.check() == []
assert "pyspark" not in sys.modules
assert tahoe_startup.is_installed()  # Python ran the .pth file when it started
assert Path(tahoe.__file__, "../py.typed").resolve().is_file()
assert tahoe.__version__ == importlib.metadata.version("tahoe-delta")
message = ""
try:
    tahoe.DeltaTable  # noqa: B018 - the name is imported when it is used
except ImportError as error:
    message = str(error)
assert "pip install 'tahoe-delta[spark]'" in message, message
