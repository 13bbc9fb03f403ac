"""The permitted imports of a process's first call: each import costs every short program and every command time."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.log.files.paths import commit_name

NEVER = {
    "asyncio",
    "deltalake",
    "duckdb",
    "fsspec",
    "http",
    "multiprocessing",
    "pandas",
    "polars",
    "py4j",
    "pyiceberg",
    "pyspark",
    "sqlglot",
}
"""No call may import these."""
SCREEN = {"rich", "typer", "click"}
"""The command line may import these, and nothing else may."""

# Imports persist: the calls of a process are in an order in which later calls may import more.
WITHOUT_A_CONDITION = {
    "nothing": ("pass", SCREEN | {"numpy", "pyarrow", "obstore", "pyroaring"}),
    "files": ("table = tahoe.Table(url); table.files()", SCREEN | {"pyroaring"}),
    "history": ("table.history(); table.detail(); table.version()", SCREEN | {"pyroaring"}),
    "to_batches": ("table.to_batches(columns=['id'], limit=3).read_all()", SCREEN | {"pyroaring"}),
    "append": (
        "import pyarrow as pa; table.append(pa.table({'id': pa.arange(0, 3), 'v': pa.nulls(3, pa.string())}))",
        SCREEN | {"pyroaring"},
    ),
    "check": ("table.check()", SCREEN),
}
WITH_A_CONDITION = {
    "files": ("table = tahoe.Table(url); table.files(filter='id > 3 and v != \\'x\\'')", SCREEN | {"pyroaring"}),
    "to_arrow": ("table.to_arrow(filter='id in (1, 2)')", SCREEN | {"pyroaring"}),
    "checkpoint": ("table.checkpoint(); tahoe.Table(url).files('id > 3')", SCREEN | {"pyroaring"}),
    "delete": ("table.delete('id = 3')", SCREEN),
    "update": ("table.update({'id': 'id + 100'}, 'id = 12')", SCREEN),
    "overwrite": (
        "import pyarrow as pa; new = pa.table({'id': pa.arange(4, 6), 'v': pa.nulls(2, pa.string())}); "
        "table.overwrite(new, replace_where='id in (4, 5)')",
        SCREEN,
    ),
}
COMMANDS = {
    "detail": ("detail",),
    "history": ("history",),
    "check": ("check",),
    "files": ("files", "--filter", "id > 3"),
}


@pytest.fixture(params=[(), ("v",)], ids=["plain", "partitioned"])
def partition_by(request):
    return request.param


@pytest.fixture
def table(tmp_path, partition_by):
    made = Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("v", pa.string())]), partition_by=partition_by)
    for start, value in ((0, "a"), (10, "b"), (20, None)):
        made.append(pa.table({"id": range(start, start + 10), "v": pa.array([value] * 10, pa.string())}))
    return made


def imported_after(opening: str, steps: dict[str, str]) -> dict[str, set[str]]:
    """The imports of a new process after each step, one step after the other."""
    program = [opening, "import sys"]
    for name, step in steps.items():
        reported = f"print('after', {name!r}, *sorted({{each.split('.')[0] for each in sys.modules}}))"
        program += [step, reported]
    command = [sys.executable, "-W", "error", "-c", "\n".join(program)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in out.splitlines() if line.startswith("after ")]
    assert [line[1] for line in lines] == list(steps)
    return {line[1]: set(line[2:]) for line in lines}


@pytest.mark.parametrize("calls", [WITHOUT_A_CONDITION, WITH_A_CONDITION], ids=["without a condition", "with a condition"])
def test_the_first_calls_of_a_process_import_only_needed_modules(table, calls):
    imported = imported_after(f"import tahoe; url = {table.url!r}", {name: step for name, (step, _) in calls.items()})
    too_much = {name: imported[name] & (NEVER | forbidden) for name, (_, forbidden) in calls.items()}
    assert too_much == {name: set() for name in calls}


def test_a_long_tail_read_first_of_all_is_read_without_pandas(table, partition_by):
    add = {"partitionValues": dict.fromkeys(partition_by, "a"), "size": 1, "modificationTime": 1, "dataChange": True}
    lines = [
        json.dumps({"add": {"path": f"v=a%20b/{i:064}.parquet", "stats": json.dumps({"numRecords": 1}), **add}})
        for i in range(2_000)
    ]
    lines += [
        json.dumps({"remove": {"path": f"v=a%20b/{i:064}.parquet", "deletionTimestamp": 2, "dataChange": True}})
        for i in range(3_000, 4_000)
    ]
    table.store.put_if_absent(commit_name(4), "\n".join(['{"commitInfo":{"timestamp":1}}', *lines]).encode())
    read = f"table = tahoe.Table({table.url!r}); assert table.files().num_rows == 2_003; import tahoe.log.files.json_columns"
    assert imported_after("import tahoe", {"files": read})["files"] & NEVER == set()


def test_the_version_and_the_history_need_no_compute_functions(table):
    program = f"import sys, tahoe; table = tahoe.Table({table.url!r}); table.version(); table.history(); print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, capture_output=True, text=True).stdout
    assert "pyarrow" in imported.split()
    assert "pyarrow.compute" not in imported.split()


def test_opening_a_table_imports_little_more_than_arrow_and_the_store(table):
    program = "import sys, tahoe; tahoe.Table; print(*(each for each in sys.modules if each.startswith(('tahoe.', 'pyarrow.'))))"
    command = [sys.executable, "-W", "error", "-c", program]
    imported = set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert not imported & {"pyarrow.compute", "pyarrow.parquet", "pyarrow.dataset", "pyarrow.json"}
    ours = {".".join(each.split(".")[:2]) for each in imported if each.startswith("tahoe.")}
    assert ours <= {"tahoe.api", "tahoe.base", "tahoe.observe", "tahoe.ops", "tahoe.snapshot", "tahoe.store", "tahoe.stream"} | {
        f"tahoe.base.{name}"
        for name in (
            "argument_checks",
            "clock",
            "error_classes",
            "exceptions",
            "html",
            "lazy",
            "method_options",
            "progress",
            "secrets",
            "version",
        )
    }
    observers = {"tahoe.observe", *(f"tahoe.observe.{name}" for name in ("lineage", "log_records", "spans"))}
    assert {each for each in imported if each.startswith("tahoe.observe")} == observers
    # Of the operations, snapshots and streams, only the table's methods and their options.
    assert {each for each in imported if each.startswith(("tahoe.ops.", "tahoe.snapshot.", "tahoe.stream."))} == {
        "tahoe.ops.copying",
        "tahoe.ops.maintenance",
        "tahoe.ops.reporting",
        "tahoe.ops.tables.requests",
        "tahoe.ops.tables",
        "tahoe.ops.tables.altering",
        "tahoe.snapshot.read_options",
        "tahoe.stream.tail_options",
    }


def test_a_module_imported_late_is_the_module_itself_once_it_is_used():
    program = (
        "import sys; from tahoe.base.lazy import pc, pq\n"
        "assert not {'pyarrow.compute', 'pyarrow.parquet'} & set(sys.modules)\n"
        "assert pc.sum([1, 2]).as_py() == 3 and 'pyarrow.parquet' not in sys.modules\n"
        "import pyarrow.compute, pyarrow.parquet\n"
        "assert pc.sum is pyarrow.compute.sum and pq.ParquetFile is pyarrow.parquet.ParquetFile\n"
        "assert not hasattr(pc, 'no_such_function')"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


RUN = """
def run(*words):
    sys.argv = ["tahoe", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
"""


def test_commands_with_json_import_only_needed_modules(table):
    steps = {name: f"run(*{(*words, table.url, '--json')!r})" for name, words in COMMANDS.items()}
    imported = imported_after(f"import sys\nfrom tahoe.cli.main import main\n{RUN}", steps)
    too_much = {name: imported[name] & (NEVER | {"numpy", "rich"}) for name in COMMANDS}
    assert too_much == {name: set() for name in COMMANDS}
