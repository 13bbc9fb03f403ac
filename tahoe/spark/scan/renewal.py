"""A plan that follows its table reads the newest version at each execution, and the same version in all of its parts.

A DataFrame's plan is created once and executed often: by `count`, by `show`, by a temporary view over it. Before Spark's optimizer finishes
a plan, `Renewal` examines each scan in it that follows a table, and replaces the files with those of the newest version. A scan of a
specific version or timestamp stays. (delta-spark does the same, by rules of its own.)

Optimizer rules are classes, so one is compiled (`tahoe.spark.jvm.compiled`). The compiled rule looks for Tahoe's scans, and calls Python
only if there is one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from threading import Lock

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.schema.types import StructType, schema_from_json
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import add_optimizer_rule
from tahoe.spark.jvm.proxies import PartialFunction, Proxied, answered
from tahoe.spark.jvm.records import copied, items
from tahoe.spark.scan.changed_files import ROW_CONDITIONS, ChangedFilesIndex
from tahoe.spark.scan.file_index import FileIndex
from tahoe.spark.scan.own_reads import PROPERTY, own_reads
from tahoe.spark.scan.row_id_columns import METADATA, ROW_INDEX

_MOST_QUERIES = 64


def follow_tables(spark: SparkSession) -> None:
    """Add the rule to the session; copies of the session have it too. A second call does nothing."""
    add_optimizer_rule(spark, "Renewal", lambda: _Renewal(spark), transaction=PROPERTY)


class _Renewal(Proxied):
    """``(plan, texts of Tahoe's scans in it, tracker, its number, the write's number) → plan``.

    Each query has one tracker, which its subqueries share. A query whose rows are written has the number of the write's transaction.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._jvm = spark, Jvm.of(spark)
        self._queries: OrderedDict[int, tuple[JavaObject, dict[str, Snapshot]]] = OrderedDict()
        self._lock = Lock()

    @answered
    def apply(self, plan: JavaObject, texts: str, tracker: JavaObject | None, number: int, write: str | None) -> JavaObject:
        """Return the plan with the newest files of every table that it follows; with those of the transaction for the written table."""
        versions, reads = self._versions(tracker, number), own_reads(write)
        older: dict[str, tuple[FileIndex, FileIndex]] = {}
        for text in texts.split("\n"):
            index = _following(text)
            if index is None or index.follows is None:
                continue
            url = index.follows.url
            if reads is not None and reads.snapshot.store.url == url and not isinstance(index, ChangedFilesIndex):
                refuse_other_columns(index.snapshot, reads.snapshot)
                older[text] = index, index.in_transaction(reads)
                continue
            if url not in versions:
                versions[url] = index.follows.snapshot()
            if not index.shows(versions[url]):
                refuse_other_columns(index.snapshot, versions[url])
                older[text] = index, index.renewed(versions[url])
        if not older:
            return plan
        scans = [(leaf, older.get(text_of(leaf) or "")) for leaf in items(plan.collectLeaves())]
        renewed = [(leaf, self._renewed(leaf, *newer)) for leaf, newer in scans if newer is not None]
        return plan.transformUp(
            PartialFunction(lambda node: next((replacement for leaf, replacement in renewed if leaf.fastEquals(node)), None))
        )

    def _versions(self, tracker: JavaObject | None, number: int) -> dict[str, Snapshot]:
        """Return the versions of the tables that this query reads; the first scan of a table sets its version."""
        if tracker is None:
            return {}
        with self._lock:
            # A reference to the tracker prevents another one from getting its number.
            query = self._queries.setdefault(number, (tracker, {}))
            self._queries.move_to_end(number)
            while len(self._queries) > _MOST_QUERIES:
                self._queries.popitem(last=False)
        return query[1]

    def _renewed(self, leaf: JavaObject, index: FileIndex, newest: FileIndex) -> JavaObject:
        relation = leaf.relation()
        location = newest.to_java()
        missing = tuple(column for column in newest.hidden if column not in index.hidden)
        if not missing:
            return copied(leaf, relation=copied(relation, relation.sparkSession(), location=location))
        # The first vectors since the plan was created: the deleted rows are filtered out below the planned nodes.
        jvm, output = self._jvm, list(items(leaf.output()))
        # Spark provides the position of a row in one way per scan: as a column, or as a field of the struct that the query requested.
        structs = _with_name(output, METADATA)
        metadata = next((struct for struct in structs if '"row_index"' in str(struct.dataType().json())), None)
        row_index = next(_with_name(output, ROW_INDEX.name), None)
        hidden = StructType(missing if metadata is not None or row_index is not None else (*missing, ROW_INDEX))
        in_files = schema_from_json(str(relation.dataSchema().json()))
        if len(hidden.fields) > len(missing):
            in_files = StructType((*in_files.fields, ROW_INDEX))
        wider = copied(
            relation,
            relation.sparkSession(),
            location=location,
            partitionSchema=location.partitionSchema(),
            dataSchema=jvm.data_type(in_files.to_json()),
        )
        more = list(items(jvm.catalyst("types.DataTypeUtils").toAttributes(jvm.data_type(hidden.to_json()))))
        scan = jvm.frame(relation.sparkSession(), copied(leaf, relation=wider, output=jvm.seq(*output, *more)), self._spark)
        column = row_index if row_index is not None else more[-1]
        position = jvm.column(metadata)["row_index"] if metadata is not None else jvm.column(column)
        position = jvm.column(jvm.catalyst("expressions.KnownNotNull")(jvm.expression(position)))
        for field, attribute in zip(missing, more, strict=False):
            scan = scan.where(ROW_CONDITIONS[field.name](jvm, jvm.column(attribute), position))
        return jvm.catalyst("plans.logical.Project")(jvm.seq(*output), scan._jdf.queryExecution().analyzed())

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function5",)


def index_of(leaf: JavaObject) -> FileIndex | None:
    """Return the file index of a plan leaf, if it is a scan that follows its table."""
    index = scan_of(leaf)
    return None if index is None or index.follows is None else index


def followed_table(leaf: JavaObject) -> Table | None:
    """Return the table that a plan leaf follows, if it is a scan of a table or of its changes."""
    text = text_of(leaf)
    index = None if text is None else _following(text)
    return None if index is None else index.follows


def _following(text: str) -> FileIndex | None:
    return FileIndex.of_text(text) or ChangedFilesIndex.of_text(text)


def scan_of(leaf: JavaObject) -> FileIndex | None:
    """Return the file index of a plan leaf, if it scans a whole version of a table, the newest or an older one."""
    text = text_of(leaf)
    return None if text is None else FileIndex.of_text(text)


def _with_name(attributes: Iterable[JavaObject], name: str) -> Iterator[JavaObject]:
    return (attribute for attribute in attributes if attribute.name() == name)


def text_of(leaf: JavaObject) -> str | None:
    """Return the text of the index of a file scan; None for other leaves."""
    if str(leaf.getClass().getSimpleName()) != "LogicalRelation":
        return None
    relation = leaf.relation()
    return str(relation.location().toString()) if str(relation.getClass().getSimpleName()) == "HadoopFsRelation" else None


def refuse_other_columns(planned: Snapshot, newest: Snapshot) -> None:
    """Reject a plan whose columns have changed or are gone; added columns are allowed."""
    if planned.metadata.schema_string == newest.metadata.schema_string and planned.partition_columns == newest.partition_columns:
        return
    reason = None
    for column in planned.schema:
        now = newest.schema.find(column.name)
        if now is None:
            reason = f"column '{column.name}' is no longer there"
        elif now.data_type != column.data_type or now.physical_name != column.physical_name:
            reason = f"column '{column.name}' is another one now"
        if reason is not None:
            break
    if reason is None and planned.partition_columns != newest.partition_columns:
        reason = f"it is partitioned by {list(newest.partition_columns)} now, by {list(planned.partition_columns)} before"
    if reason is not None:
        raise InvalidRequest(
            f"The schema of table {newest.store.url} has changed since this DataFrame was made of version {planned.version}: in version "
            f"{newest.version} {reason}. Read the table again for a new DataFrame.",
            code="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
            table=newest.store.url,
            version=newest.version,
        )
