"""The Java sources of Tahoe: the running Spark compiles each, and the Python methods that they call exist. So do Spark's private members."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib.resources import files

import pytest
from pyspark.sql import SparkSession

from tahoe.spark.catalog.enable_names import fields_of_catalogs, fields_of_state
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.compiled import PACKAGE, java_source
from tahoe.spark.scan.file_index import FileIndex
from tahoe.spark.scan.from_log import _FromLog
from tahoe.spark.sink.sink import StreamWriterOptions
from tahoe.spark.stream.micro_batches import MicroBatches
from tahoe.spark.stream.read_stream import package_of_streams
from tahoe.spark.versions.members import private_value

SOURCES = sorted(
    file.name.removesuffix(".java") for file in (files("tahoe.spark") / "java").iterdir() if file.name.endswith(".java")
)
PLACEHOLDERS: dict[str, Callable[[Jvm], dict[str, str]]] = {
    "DroppedNames": lambda jvm: {"coordinator": "c"},
    "FromLog": lambda jvm: {"deleted_rows": "d"},
    "Renewal": lambda jvm: {"transaction": "t"},
    "PythonScans": lambda jvm: {"option": "o"},
    "StreamedTable": lambda jvm: {"session": "null", "name_argument": ""},
    "TableStream": lambda jvm: {"offsets": package_of_streams(jvm)},
}
SINCE = {"RecordedChanges": "4.2"}
"""The first release of Spark with the interfaces of a class."""
# These classes call Python with the name of a question. MicroBatches has a method of that name; the others match the name in `apply`.
QUESTIONS = {"FromLog": _FromLog, "LogFiles": FileIndex, "TableStream": MicroBatches}


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "StreamedTable"])
def test_this_spark_compiles_it(spark: SparkSession, name: str) -> None:
    if spark.version < SINCE.get(name, ""):
        pytest.skip(f"Spark has the interfaces since {SINCE[name]}")
    jvm = Jvm.of(spark)
    source = java_source(name, PLACEHOLDERS.get(name, lambda jvm: {})(jvm))
    assert "{{" not in source
    compiler = jvm.java_class("org.codehaus.janino.SimpleCompiler")()
    compiler.setParentClassLoader(jvm.java_class("org.apache.spark.util.Utils").getContextOrSparkClassLoader())
    compiler.cook(source)
    assert len(compiler.getClassLoader().loadClass(f"{PACKAGE}.{name}").getConstructors()) == 1


def test_this_spark_compiles_the_table_of_a_stream(spark: SparkSession, tmp_path) -> None:
    spark.range(1).write.format("delta").save(str(tmp_path))
    assert spark.readStream.format("delta").load(str(tmp_path)).isStreaming


def test_each_question_of_java_has_an_answer_in_python() -> None:
    asking = {name for name in SOURCES if 'answer("' in java_source(name, {})}
    assert asking == QUESTIONS.keys()
    for name, answering in QUESTIONS.items():
        for question in set(re.findall(r'\banswer\("(\w+)"', java_source(name, {}))):
            assert hasattr(answering, question) or f'"{question}"' in inspect.getsource(answering), (name, question)


def test_this_spark_has_every_private_member(spark: SparkSession) -> None:
    state = spark._jsparkSession.sessionState()
    assert fields_of_state(state).keys() == {"sqlParser", "createClone", "analyzerBuilder"}
    assert fields_of_catalogs(state.catalogManager()).keys() == {"defaultSessionCatalog", "tableRelationCache"}
    assert private_value(spark._jsparkSession.sharedState().cacheManager(), "cachedData", "test") is not None
    rows = spark.readStream.format("rate").load()
    options = StreamWriterOptions.of(spark, rows.writeStream.format("delta").partitionBy("VALUE")._jwrite)
    assert (options.source, options.output_mode, options.partition_by) == ("delta", "Append", ("value",))
    assert StreamWriterOptions.of(spark, rows.writeStream.clusterBy("VALUE")._jwrite).cluster_by == ("value",)
