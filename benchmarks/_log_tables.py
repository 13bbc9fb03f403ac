"""Delta tables that consist of a log only: a checkpoint with many live files and some commits after it. No data file exists.

Shared by the experiments on planning and checkpoints. The tables are written with pyarrow alone, so that no tested engine
influences them: seven columns, one of them the partition, and statistics over the other six (about 420 bytes of JSON per file).
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["FIRST_ID_OF_TAIL", "METADATA", "ROWS_PER_FILE", "add_commit", "live_files", "make_commits", "make_table"]

ROWS_PER_FILE = 1000
FIRST_ID_OF_TAIL = 10**12
PARTITIONS = 100

_FIELDS = [
    ("id", "long"),
    ("moment", "timestamp"),
    ("name", "string"),
    ("amount", "double"),
    ("day", "date"),
    ("kind", "integer"),
    ("region", "string"),
]
SCHEMA_STRING = json.dumps(
    {"type": "struct", "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in _FIELDS]}
)
_BOUNDS = pa.struct(
    [
        ("id", pa.int64()),
        ("moment", pa.timestamp("us", "UTC")),
        ("name", pa.string()),
        ("amount", pa.float64()),
        ("day", pa.date32()),
        ("kind", pa.int32()),
    ]
)
_COUNTS = pa.struct([(field.name, pa.int64()) for field in _BOUNDS])
_STATS = pa.struct([("numRecords", pa.int64()), ("minValues", _BOUNDS), ("maxValues", _BOUNDS), ("nullCount", _COUNTS)])
_STRING_MAP = pa.map_(pa.string(), pa.string())
_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
METADATA = {
    "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": SCHEMA_STRING,
    "partitionColumns": ["region"],
    "configuration": {},
    "createdTime": 1_700_000_000_000,
}

_ADD_FIELDS = [
    pa.field("path", pa.string()),
    pa.field("partitionValues", _STRING_MAP),
    pa.field("size", pa.int64()),
    pa.field("modificationTime", pa.int64()),
    pa.field("dataChange", pa.bool_()),
    pa.field("stats", pa.string()),
    pa.field("tags", _STRING_MAP),
]
_ADD_STRUCTS = [pa.field("stats_parsed", _STATS), pa.field("partitionValues_parsed", pa.struct([("region", pa.string())]))]


def make_table(root: Path, files: int, *, commits: int = 10, row_group: int = 250_000, removed: int = 2) -> tuple[Path, Path]:
    """Two tables that differ in their statistics alone: ``root/json`` has them as text, ``root/struct`` as text and as structs.

    Each has a checkpoint at version 10 with `files` live files, then `commits` commits of 10 adds and some removes.

    Args:
        row_group: rows in a row group of the checkpoint.
        removed: files of the checkpoint that each commit removes.
    """
    places = root / "json", root / "struct"
    name = f"{10:020d}.checkpoint.parquet"
    for place in places:
        (place / "_delta_log").mkdir(parents=True)
    _write_checkpoints([place / "_delta_log" / name for place in places], files, row_group)
    for place in places:
        log = place / "_delta_log"
        (log / f"{10:020d}.json").write_text(_line("commitInfo", {"timestamp": 1_700_000_000_000, "operation": "WRITE"}))
        for number in range(commits):
            add_commit(place, 11 + number, removed)
        hint = {"version": 10, "size": files + 2, "numOfAddFiles": files, "sizeInBytes": (log / name).stat().st_size}
        (log / "_last_checkpoint").write_text(json.dumps(hint))
    return places


def live_files(rows: range) -> pa.Table:
    """Those files of the checkpoint, the members of `add` as columns."""
    kind = pa.struct([*_ADD_FIELDS, *_ADD_STRUCTS])
    return pa.Table.from_struct_array(_adds_array(rows, kind))


def add_commit(root: Path, version: int, removed: int = 2, step: int = 1) -> None:
    """One more commit of 10 adds; it removes files of the checkpoint.

    Args:
        step: from one file that it removes to the next.
    """
    number = version - 11
    lines = [_line("commitInfo", {"timestamp": 1_700_000_000_000 + number, "operation": "WRITE", "operationParameters": {}})]
    lines += [_line("add", _add(FIRST_ID_OF_TAIL + number * 10 + i)) for i in range(10)]
    for i in range(removed):
        gone = _add((number * removed + i) * step)
        lines.append(_line("remove", {"path": gone["path"], "deletionTimestamp": 1_700_000_000_000, "dataChange": True}))
    (root / "_delta_log" / f"{version:020d}.json").write_text("".join(lines))


def make_commits(root: Path, commits: int) -> Path:
    """A table at `root` of commits alone: 10 adds each, no checkpoint."""
    log = root / "_delta_log"
    log.mkdir(parents=True)
    for number in range(commits):
        lines = [_line("commitInfo", {"timestamp": 1_700_000_000_000 + number, "operation": "WRITE", "operationParameters": {}})]
        if number == 0:
            lines += [_line("protocol", _PROTOCOL), _line("metaData", METADATA)]
        lines += [_line("add", _add(number * 10 + i)) for i in range(10)]
        (log / f"{number:020d}.json").write_text("".join(lines))
    return root


def _write_checkpoints(paths: list[Path], files: int, row_group: int) -> None:
    """The same checkpoint without and with struct statistics."""
    metadata_type = pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _STRING_MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _STRING_MAP),
            ("createdTime", pa.int64()),
        ]
    )
    others = [
        pa.field("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
        pa.field("metaData", metadata_type),
        pa.field("remove", pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])),
    ]
    single = METADATA | {"configuration": [], "format": {"provider": "parquet", "options": []}}
    types = [pa.struct(_ADD_FIELDS), pa.struct([*_ADD_FIELDS, *_ADD_STRUCTS])]
    schemas = [pa.schema([*others, ("add", add_type)]) for add_type in types]
    with pq.ParquetWriter(paths[0], schemas[0]) as texts, pq.ParquetWriter(paths[1], schemas[1]) as both:
        for start in range(0, files, row_group):
            rows = range(start, min(start + row_group, files))
            extra = 2 if start == 0 else 0
            count = len(rows) + extra
            values = [[_PROTOCOL, None], [None, single], []]
            columns = [
                pa.array((value + [None] * count)[:count] if extra else [None] * count, field.type)
                for value, field in zip(values, others, strict=True)
            ]
            whole = _adds_array(rows, types[1])
            narrow = pa.StructArray.from_arrays([whole.field(field.name) for field in _ADD_FIELDS], fields=_ADD_FIELDS)
            for writer, schema, adds in ((texts, schemas[0], narrow), (both, schemas[1], whole)):
                column = pa.concat_arrays([pa.nulls(extra, adds.type), adds])
                writer.write_table(pa.Table.from_arrays([*columns, column], schema=schema), row_group_size=count)


def _adds_array(rows: range, add_type: pa.StructType) -> pa.StructArray:
    count = len(rows)
    columns = {
        "path": pa.array([_path(i) for i in rows]),
        "partitionValues": pa.MapArray.from_arrays(
            pa.array(range(count + 1), pa.int32()), pa.array(["region"] * count), pa.array([_region(i) for i in rows])
        ),
        "size": pa.array([_size(i) for i in rows], pa.int64()),
        "modificationTime": pa.array([1_700_000_000_000 + i for i in rows], pa.int64()),
        "dataChange": pa.array([False] * count),
        "stats": pa.array([_stats_json(i) for i in rows]),
        "tags": pa.nulls(count, _STRING_MAP),
    }
    bounds = [_bounds_array(rows, upper) for upper in (False, True)]
    counts = pa.StructArray.from_arrays([pa.array([0] * count, pa.int64())] * len(_COUNTS), fields=list(_COUNTS))
    records = pa.array([ROWS_PER_FILE] * count, pa.int64())
    columns["stats_parsed"] = pa.StructArray.from_arrays([records, *bounds, counts], fields=list(_STATS))
    columns["partitionValues_parsed"] = pa.StructArray.from_arrays([pa.array([_region(i) for i in rows])], names=["region"])
    return pa.StructArray.from_arrays([columns[field.name] for field in add_type], fields=list(add_type))


def _bounds_array(rows: range, upper: bool) -> pa.StructArray:
    values = [_bounds(i)[upper] for i in rows]
    return pa.StructArray.from_arrays([pa.array([v[f.name] for v in values], f.type) for f in _BOUNDS], fields=list(_BOUNDS))


def _ids(i: int) -> tuple[int, int]:
    return i * ROWS_PER_FILE, i * ROWS_PER_FILE + ROWS_PER_FILE - 1


def _scrambled(i: int) -> int:
    """A number that has nothing to do with the order of the files, the same in every run."""
    return (i * 2_654_435_761) & 0xFFFFFFFF


def _region(i: int) -> str:
    return f"region-{_scrambled(i) % PARTITIONS:03d}"


def _size(i: int) -> int:
    return 1_000_000 + _scrambled(i) % 1_000_000


def _path(i: int) -> str:
    noise = f"{_scrambled(i):08x}"
    return f"region={_region(i)}/part-{i % 100000:05d}-{noise}-9e3c-4a55-8f0c-{i:012x}.c000.snappy.parquet"


def _bounds(i: int) -> tuple[dict[str, object], dict[str, object]]:
    low, high = _ids(i)
    noise = _scrambled(i)
    moment = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=i * 37 % 10**8)
    day = date(2020, 1, 1) + timedelta(days=noise % 2000)
    return (
        {
            "id": low,
            "moment": moment,
            "name": f"aa-{noise * 0x1_0001_0001:028x}",
            "amount": noise / 1000,
            "day": day,
            "kind": noise % 7,
        },
        {
            "id": high,
            "moment": moment + timedelta(seconds=36),
            "name": f"zz-{noise * 0x1_0001_0001:028x}",
            "amount": noise / 1000 + 99.5,
            "day": day + timedelta(days=3),
            "kind": 7 + noise % 90,
        },
    )


def _stats_json(i: int) -> str:
    low, high = _bounds(i)
    texts = []
    for bounds in (low, high):
        moment = bounds["moment"]
        assert isinstance(moment, datetime)
        texts.append(
            f'{{"id":{bounds["id"]},"moment":"{moment:%Y-%m-%dT%H:%M:%S}.000Z","name":"{bounds["name"]}",'
            f'"amount":{bounds["amount"]},"day":"{bounds["day"]}","kind":{bounds["kind"]}}}'
        )
    counts = '{"id":0,"moment":0,"name":0,"amount":0,"day":0,"kind":0}'
    return f'{{"numRecords":{ROWS_PER_FILE},"minValues":{texts[0]},"maxValues":{texts[1]},"nullCount":{counts}}}'


def _add(i: int) -> dict[str, object]:
    return {
        "path": _path(i),
        "partitionValues": {"region": _region(i)},
        "size": _size(i),
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": _stats_json(i),
    }


def _line(name: str, value: object) -> str:
    return json.dumps({name: value}, separators=(",", ":")) + "\n"
