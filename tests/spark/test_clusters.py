"""Commands on a standalone cluster whose executors have no Tahoe and die: rows are right, and none is there twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.own_spark import run
from tests.spark.standalone import CONNECTED, cluster

BEGIN = """
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.spark.executors.shard_encoder import SparkShards
from tahoe.spark.write import writer
writer._FOOTERS_ON_DRIVER, writer._TASKS = 0, 2  # executors read footers
spark = tahoe.enable(builder.getOrCreate())
UNIFORM_RUNTIME.shards = SparkShards(spark, least_files=1)


def importable(_):
    try:
        import tahoe
        yield "Tahoe"
    except ModuleNotFoundError as error:
        yield error.name


def check(name, table, ids, column="id"):
    table = Table(table.url[7:])
    found = sorted(table.to_arrow()[column].to_pylist())
    assert found == sorted(ids), (name, len(found), found[:20])
    assert table.check(deep=True) == [], name
    print("=", name)
    return table


def dying(folder, path, how):
    # The first attempt of the first task writes files, and does not finish.
    def rows(batches):
        context = TaskContext.get()
        number, attempt = context.partitionId(), context.attemptNumber()
        open(f"{folder}/attempt-{number}-{attempt}", "w").close()
        yield from batches
        if number or attempt:
            return
        while len(files := glob.glob(path + "/**/part-00000-*.parquet", recursive=True)) < 2:
            time.sleep(0.05)
        with open(f"{folder}/dead", "w") as file:
            file.write("\\n".join(map(os.path.basename, files)))
        if how == "killed":
            os.kill(os.getppid(), 9)
        while how == "slow":
            time.sleep(0.05)
        raise ValueError("the first attempt")

    import glob, os, time
    from pyspark import TaskContext
    return rows


def write_with_a_dead_attempt(how, rows=200_000):
    for file in glob.glob(folder + "/attempt-*"):
        os.unlink(file)
    path = f"{folder}/{how}"
    table = Table.create(path, pa.schema({"id": pa.int64()}))
    data = spark.range(0, rows, 1, 2).mapInArrow(dying(folder, path, how), "id long")
    data.write.format("delta").option("maxRecordsPerFile", rows // 8).mode("append").save(path)
    assert os.path.exists(f"{folder}/attempt-0-1"), "no second attempt"
    dead = open(f"{folder}/dead").read().split()
    assert dead and not set(dead) & {os.path.basename(name) for name in table.files()["path"].to_pylist()}
    check(f"written although an attempt was {how}", table, range(rows))


VECTORS = {"delta.enableDeletionVectors": "true"}
ICEBERG = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
ICEBERG |= {"delta.universalFormat.enabledFormats": "iceberg"}


def made(name, files=4, **options):
    table = Table.create(f"{folder}/{name}", pa.schema({"id": pa.int64(), "s": pa.string()}), **options)
    for number in range(files):
        table.append(pa.table({"id": range(number * 100, number * 100 + 100), "s": ["a"] * 100}))
    return table


print("=", spark.sparkContext.parallelize([0, 1], 2).mapPartitions(importable).collect())
"""

SOME = """
write_with_a_dead_attempt("killed")
table = made("changed", properties={**VECTORS, "delta.enableChangeDataFeed": "true"})
target = DeltaTable.forPath(spark, f"{folder}/changed")
target.delete("id % 100 = 1")
target.update("id % 100 = 2", {"id": "-id"})
source = spark.range(390, 410).selectExpr("id", "'b' AS s")
target.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
expected = [-i if i % 100 == 2 and i < 400 else i for i in range(410) if i % 100 != 1 or i == 401]
check("changed", table, expected)
spark.sql(f"OPTIMIZE delta.`{folder}/changed` ZORDER BY (id)")
check(table.history(1)[0]["operation"], table, expected)
uniform = made("uniform", properties=ICEBERG)
uniform.uniform.sync(rebuild=True)
check("converted to Iceberg", uniform, range(400))
"""

SAID = [
    "= ['tahoe', 'tahoe']",
    "= written although an attempt was killed",
    "= changed",
    "= OPTIMIZE",
    "= converted to Iceberg",
]


# Over five seconds: a master, two workers, and executors that start again when they are killed.
@pytest.mark.own_jvm
@pytest.mark.long
def test_executors_without_tahoe_that_die_change_no_result(tmp_path: Path, java_options: str) -> None:
    with cluster(tmp_path, java_options) as running:
        assert run(CONNECTED + BEGIN + SOME, *running.arguments) == SAID


LOST = """
from pyspark.sql import functions as sf
from tahoe.spark.commands import row_changes
from tahoe.spark.commands.merge import merge as merging

spark.sparkContext.setLogLevel("OFF")
same = sf.udf(lambda number: number, "long")
runs = []
staged = merging.stage_merge
merging.stage_merge = lambda *arguments: (runs.append(1), staged(*arguments))[1]


def killing_once(module, name, signal=9):
    original, left = getattr(module, name), [1]

    def killing(*arguments, **named):
        if left:
            left.clear()
            assert kill(signal)
        return original(*arguments, **named)

    setattr(module, name, killing)


def merged(name, properties):
    table = made(name, properties=properties)
    source = spark.range(300, 500, 1, 2).select(same("id").alias("id"), sf.lit("b").alias("s"))
    merge = DeltaTable.forPath(spark, f"{folder}/{name}").alias("t").merge(source.alias("s"), "t.id = s.id")
    runs.clear()
    merge.whenMatchedUpdate("t.id % 2 = 0", {"s": "s.s"}).whenMatchedDelete().whenNotMatchedInsertAll().execute()
    expected = [i for i in range(500) if i < 300 or i >= 400 or i % 2 == 0]
    check(f"{name}: {'once' if len(runs) == 1 else 'again'}", table, expected)
    assert table.to_arrow(filter="s = 'b'").num_rows == 150 and table.version() == 5


killing_once(merging, "pairs_of")
merged("MERGE that loses its source", VECTORS)
killing_once(row_changes, "write_files")
merged("MERGE that loses its pairs", {"delta.enableChangeDataFeed": "true"})
die_at_the_next_python_task()
merged("MERGE whose source is computed twice", {})
assert died() == 1

for name, properties in {"vectors": VECTORS, "rewritten": {"delta.enableChangeDataFeed": "true"}}.items():
    table = made(name, properties=properties)
    killing_once(row_changes, "write_files")
    DeltaTable.forPath(spark, f"{folder}/{name}").update("id % 10 = 1", {"id": "-id"})
    kill()
    DeltaTable.forPath(spark, f"{folder}/{name}").delete("id % 10 = 2")
    check(f"UPDATE and DELETE, {name}", table, [-i if i % 10 == 1 else i for i in range(400) if i % 10 != 2])

for by in ("", "ZORDER BY (id)"):
    table = made(f"optimized{by[:1]}")
    die_at_the_next_python_task()
    spark.sql(f"OPTIMIZE delta.`{table.url[7:]}` {by}")
    assert died() == 1 and len(table.files()) == 1
    check(f"OPTIMIZE {by}".strip(), table, range(400))

uniform = made("uniform", properties=ICEBERG)
die_at_the_next_python_task()
uniform.uniform.sync(rebuild=True)
assert died() == 1 and uniform.uniform.status().lag_versions == 0
check("conversion to Iceberg", uniform, range(400))

copy = f"{folder}/copy"
streamed = spark.readStream.format("delta").option("maxFilesPerTrigger", 2).load(uniform.url[7:]).select(same("id").alias("id"), "s")
query = streamed.writeStream.format("delta").option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
die_at_the_next_python_task()
query.start(copy).awaitTermination()
assert died() == 1
check("stream", Table(copy), range(400))
uniform.append(pa.table({"id": [400], "s": ["c"]}))
kill()
query.start(copy).awaitTermination()
check("stream, continued", Table(copy), range(401))

write_with_a_dead_attempt("killed")
write_with_a_dead_attempt("failed")
"""

ALL = """
path = f"{folder}/all"
table = made("all", properties={**VECTORS, "delta.enableChangeDataFeed": "true"})
spark.range(400, 500).selectExpr("id", "'d' AS s").write.format("delta").mode("append").save(path)
spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = 1")
spark.sql(f"UPDATE delta.`{path}` SET s = 'e' WHERE id = 0")
rows = spark.read.format("delta").load(path)
assert rows.count() == 450 and rows.where("s = 'e'").count() == 1
changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 6).load(path)
assert changes.where("_change_type = 'delete'").count() == 50
check("reads, changes", table, [i for i in range(500) if i % 10 != 1])
spark.sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)")
spark.sql(f"ANALYZE TABLE delta.`{path}` COMPUTE DELTA STATISTICS")
spark.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY (id)")
spark.sql(f"OPTIMIZE delta.`{path}` FULL")
table.checkpoint()
assert spark.sql(f"VACUUM delta.`{path}` DRY RUN").count() == 0
spark.sql(f"VACUUM delta.`{path}`")
check("upkeep", table, [i for i in range(500) if i % 10 != 1])
spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 5")
check("RESTORE", table, range(500))
for kind in ("DEEP", "SHALLOW"):
    spark.sql(f"CREATE TABLE delta.`{folder}/{kind}` {kind} CLONE delta.`{path}`")
    check(f"{kind} CLONE", Table(f"{folder}/{kind}"), range(500))
spark.range(100).write.parquet(f"{folder}/plain")
spark.sql(f"CONVERT TO DELTA parquet.`{folder}/plain`")
check("CONVERT", Table(f"{folder}/plain"), range(100))
source = spark.range(5)
source.write.format("delta").option("replaceUsing", "id").mode("overwrite").save(f"{folder}/plain")
check("replaceUsing", Table(f"{folder}/plain"), range(100))
"""

SPECULATION = """
builder = builder.config("spark.speculation", "true").config("spark.speculation.interval", "100ms")
builder = builder.config("spark.speculation.quantile", "0.5").config("spark.speculation.multiplier", "1.1")
"""

DECOMMISSION = """
builder = builder.config("spark.decommission.enabled", "true").config("spark.storage.decommission.enabled", "true")
builder = builder.config("spark.storage.decommission.rddBlocks.enabled", "true")
builder = builder.config("spark.storage.decommission.shuffleBlocks.enabled", "true")
"""

LEAVING = """
import signal, threading
context = spark.sparkContext
ended = threading.Event()
for number in range(6):
    table = made(f"left{number}", properties=VECTORS if number % 2 else {})
    source = spark.range(300, 500, 1, 2).selectExpr("id", "'b' AS s")
    merge = DeltaTable.forPath(spark, table.url[7:]).alias("t").merge(source.alias("s"), "t.id = s.id")
    work = threading.Thread(target=merge.whenMatchedDelete().whenNotMatchedInsertAll().execute)
    work.start()
    ended.wait(0.3 * number)
    kill(signal.SIGPWR)
    work.join()
    check("MERGE", table, [i for i in range(500) if i < 300 or i >= 400])
spark.sql(f"OPTIMIZE delta.`{table.url[7:]}`")
check("OPTIMIZE", table, [i for i in range(500) if i < 300 or i >= 400])
"""


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_each_kind_of_command_survives_the_loss_of_executors(tmp_path: Path, java_options: str) -> None:
    with cluster(tmp_path, java_options) as running:
        assert run(CONNECTED + BEGIN + LOST, *running.arguments, seconds=1400) == [
            "= ['tahoe', 'tahoe']",
            "= MERGE that loses its source: again",
            "= MERGE that loses its pairs: again",
            "= MERGE whose source is computed twice: once",
            "= UPDATE and DELETE, vectors",
            "= UPDATE and DELETE, rewritten",
            "= OPTIMIZE",
            "= OPTIMIZE ZORDER BY (id)",
            "= conversion to Iceberg",
            "= stream",
            "= stream, continued",
            "= written although an attempt was killed",
            "= written although an attempt was failed",
        ]


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_every_command_works_on_executors_without_tahoe(tmp_path: Path, java_options: str) -> None:
    with cluster(tmp_path, java_options) as running:
        assert run(CONNECTED + BEGIN + ALL, *running.arguments, seconds=1400) == [
            "= ['tahoe', 'tahoe']",
            "= reads, changes",
            "= upkeep",
            "= RESTORE",
            "= DEEP CLONE",
            "= SHALLOW CLONE",
            "= CONVERT",
            "= replaceUsing",
        ]


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_a_slow_attempt_that_a_second_one_overtakes_adds_no_row(tmp_path: Path, java_options: str) -> None:
    with cluster(tmp_path, java_options) as running:
        program = CONNECTED + SPECULATION + BEGIN + 'write_with_a_dead_attempt("slow")'
        assert run(program, *running.arguments, seconds=1400) == [SAID[0], "= written although an attempt was slow"]


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_commands_survive_executors_that_are_decommissioned(tmp_path: Path, java_options: str) -> None:
    with cluster(tmp_path, java_options) as running:
        said = run(CONNECTED + DECOMMISSION + BEGIN + LEAVING, *running.arguments, seconds=1400)
        assert said == [SAID[0], *["= MERGE"] * 6, "= OPTIMIZE"]
