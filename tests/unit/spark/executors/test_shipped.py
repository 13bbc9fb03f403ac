"""Tahoe's code for Python workers that have none: complete, without a path of the driver, and beside a Tahoe that a worker has."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import grimp
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from tahoe.api.table import Table
from tahoe.base.exceptions import NotFound, TahoeError
from tahoe.log.replay import add_files
from tahoe.ops.repair.statistics import statistics_of_file
from tahoe.snapshot.scan import BareVersion
from tahoe.spark.executors import row_tasks, shipped, worker
from tahoe.spark.executors.bin_tasks import rewritten_bin, rows_of_parts
from tahoe.spark.executors.shard_encoder import encode_shard
from tahoe.spark.executors.shipped import packed, sent_whole
from tahoe.spark.portable.data_source import DeltaDataSource

ELSEWHERE = """
import pickle, sys
sys.path = [entry for entry in sys.path if entry not in ("", sys.argv[2])]
with open(sys.argv[1], "rb") as file:
    task, items = pickle.load(file)
answers = list(task(items))
assert not [name for name in sys.modules if name.split(".")[0] == "tahoe"], "they are out of sight"
with open(sys.argv[1], "wb") as file:
    pickle.dump(answers, file)
"""


def run_elsewhere(folder: Path, task: Any, items: Any) -> Any:
    """The result of a task in a Python without Tahoe."""
    file, program = folder / "task", folder / "elsewhere.py"
    file.write_bytes(cloudpickle.dumps((task, items)))
    program.write_text(ELSEWHERE)
    (folder / "tahoe").mkdir()
    (folder / "tahoe/__init__.py").write_text("raise ImportError('no Tahoe here')")
    root = str(Path(__file__).parents[4])
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    outcome = subprocess.run(
        [sys.executable, str(program), str(file), root], capture_output=True, text=True, env=environment, cwd=folder, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    return pickle.loads(file.read_bytes())


def test_a_python_without_tahoe_runs_a_task_and_returns_answers_and_errors(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", pa.schema({"id": pa.int64()}))
    table.append(pa.table({"id": [3, 5]}))
    snapshot = table.snapshot()
    (add,) = add_files(snapshot.files())
    lost = replace(add, path="nowhere.parquet")
    version = BareVersion(snapshot.store, snapshot.version, snapshot.config)
    task = sent_whole(worker.each, statistics_of_file, version)
    answers = run_elsewhere(tmp_path, task, [pickle.dumps(add), pickle.dumps(lost)])
    statistics, error = (pickle.loads(answer) for answer in answers)
    assert '"minValues":{"id":3}' in statistics
    assert isinstance(error, NotFound) and "nowhere.parquet" in str(error)


def test_a_package_that_a_worker_lacks_is_named(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", pa.schema({"id": pa.int64()}), properties={"delta.enableDeletionVectors": "true"})
    table.append(pa.table({"id": [3, 5]}))
    table.delete("id = 3")
    snapshot = table.snapshot()
    (add,) = add_files(snapshot.files())
    version = BareVersion(snapshot.store, snapshot.version, snapshot.config)
    (tmp_path / "pyroaring.py").write_text("raise ModuleNotFoundError('No module', name='pyroaring')")
    task = sent_whole(worker.stream, rows_of_parts, version)
    with pytest.raises(AssertionError) as raised:
        run_elsewhere(tmp_path, task, [pickle.dumps((0, [add]))])
    assert "MissingExtra: [TAHOE_PACKAGE_MISSING_ON_EXECUTORS]" in str(raised.value)
    assert "need the package 'pyroaring'" in str(raised.value) and "PYSPARK_PYTHON" in str(raised.value)


def test_no_path_of_the_driver_is_sent() -> None:
    task = cloudpickle.dumps(sent_whole(worker.each, rewritten_bin))
    sent = task + zlib.decompress(packed())
    for path in {
        str(Path(__file__).parents[4]),
        sys.prefix,
        sys.exec_prefix,
        os.path.dirname(os.__file__),
        *filter(None, sys.path),
    }:
        assert path.encode() not in sent


def test_a_tahoe_that_a_worker_has_is_out_of_sight_for_the_time_of_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {name: sys.modules[name] for name in list(sys.modules) if name.partition(".")[0] == "tahoe"}
    for name in ours:
        monkeypatch.delitem(sys.modules, name)
    theirs = ModuleType("tahoe")
    monkeypatch.setitem(sys.modules, "tahoe", theirs)
    modules, before = worker.Modules(packed()), list(sys.meta_path)
    for _ in range(2):
        with modules:
            import tahoe.base.exceptions as inside

            seen = inside.__spec__
            assert seen is not None and seen.origin == "<tahoe.base.exceptions>" and sys.modules["tahoe"] is not theirs
            with modules, pytest.raises(ModuleNotFoundError, match="not sent"):
                __import__("tahoe.cli.main")
        assert sys.modules["tahoe"] is theirs and sys.meta_path == before
        assert [name for name in sys.modules if name.partition(".")[0] == "tahoe"] == ["tahoe"]


@pytest.mark.parametrize("module", shipped._PARTS)
def test_a_part_of_the_code_has_all_that_its_functions_import(module: str) -> None:
    graph, part = grimp.build_graph("tahoe", exclude_type_checking_imports=True, cache_dir=None), shipped._PARTS[module]
    needed, waiting = set[str](), {module}
    while waiting:
        name = waiting.pop()
        needed.add(name)
        package = name.rpartition(".")[0]
        waiting |= {*graph.find_modules_directly_imported_by(name), *([package] if package else [])} - needed
    assert {name for name in needed if not part.has(name)} == set()
    assert len(shipped._packed_part(part)) < 0.65 * len(shipped.packed())


def test_a_value_of_another_part_takes_all_code_with_it() -> None:
    assert shipped._part_for(row_tasks.rows_at, shipped._pickled([shipped._ROWS, "text"])) is shipped._ROWS
    assert shipped._part_for(row_tasks.rows_at, shipped._pickled([TahoeError])) is shipped._ROWS
    assert shipped._part_for(row_tasks.rows_at, shipped._pickled([Table])) is None
    assert shipped._part_for(encode_shard, shipped._pickled([])) is None


def test_the_code_of_the_planning_process_is_no_part_of_a_read_task(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", pa.schema({"id": pa.int64()})).append(pa.table({"id": [3]}))
    source = shipped.source_for_server(DeltaDataSource, {})

    def sizes(source_class: Any) -> list[object]:
        from pyspark import cloudpickle

        created = source_class({"path": str(tmp_path / "t")})
        schema = created.schema()
        sent = cloudpickle.dumps(created)
        planning = cloudpickle.loads(sent)
        planning.reader(schema)
        in_tasks = cloudpickle.dumps(planning)
        sys.meta_path[0].__exit__()
        return [len(sent), len(in_tasks), cloudpickle.loads(in_tasks).name()]

    sent, in_tasks, name = run_elsewhere(tmp_path, sizes, source)
    assert sent > len(shipped.packed())
    assert in_tasks < 5_000
    assert name == "delta"
