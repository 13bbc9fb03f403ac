"""The effect of a statement on any engine: its result or its error, its commits, and the table and the catalog after it.

Values that differ between runs are left out or normalized: paths, names of tables, ids, times, sizes of files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.spark.jvm.bridge import Jvm
from tests.statements.lives import LIVES, SOURCE, Step

__all__ = ["DATABASE", "lived", "lives_of"]

DATABASE = "every"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_EXPRESSION_ID = re.compile(r"#\d+L?")
_SETTINGS = ("spark.sql.sources.partitionOverwriteMode",)
_ROWS = re.compile("Rows")

Outcome = dict[str, Any]


def lives_of(spark: SparkSession, kind: str, folder: Path, names: Sequence[str] = tuple(LIVES)) -> dict[str, dict[str, Outcome]]:
    """The outcomes of each statement of each life, in one way of making and naming the table."""
    spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{folder}/db'")
    spark.sql(SOURCE).createOrReplaceTempView("src")
    try:
        return {name: lived(spark, kind, folder / str(number), LIVES[name]) for number, name in enumerate(names)}
    finally:
        spark.sql(f"DROP DATABASE {DATABASE} CASCADE")
        spark.catalog.dropTempView("src")


def lived(spark: SparkSession, kind: str, folder: Path, steps: Sequence[str | Step]) -> dict[str, Outcome]:
    """The outcomes of the statements of one life, by their text, and a number where a text comes again."""
    folder.mkdir(parents=True, exist_ok=True)
    place, outcomes = _Place(spark, kind, folder), {}
    try:
        for step in (step if isinstance(step, Step) else Step(step) for step in steps):
            if kind in step.kinds:
                again = sum(text.partition(" ~")[0] == step.text for text in outcomes)
                outcomes[f"{step.text} ~{again + 1}" if again else step.text] = place.outcome(step)
    finally:
        place.clear()
    return outcomes


class _Place:
    """Where a life takes place: names and folders of its tables."""

    def __init__(self, spark: SparkSession, kind: str, folder: Path) -> None:
        self.spark, self.kind, self.folder = spark, kind, folder
        self.catalog = spark._jsparkSession.sharedState().externalCatalog()
        places = {"managed": folder.parent / "db" / "t_managed", "external": folder / "at a place", "path": folder / "by path"}
        self.path = places[kind]
        self.names = {
            "t": f"delta.`{self.path}`" if kind == "path" else f"{DATABASE}.t_{kind}",
            "o": f"{DATABASE}.other",
            "location": f"LOCATION '{self.path}'" if kind == "external" else "",
            "path": str(self.path),
            "folder": str(folder),
            "bare": f"t_{kind}",
            "database": DATABASE,
        }
        self.before: Outcome = {}

    def outcome(self, step: Step) -> Outcome:
        """Run a statement; return its result, and the changes of the table and the catalog."""
        commits = self._commits()
        text = re.sub(r"{(\w+)}", lambda found: self.names[found[1]], step.text)
        outcome: Outcome = {}
        try:
            outcome |= self._answer(text, step.answer)
        except Exception as error:  # noqa: BLE001 - the error is the result
            outcome["error"] = _error(error)
        if new := self._commits()[len(commits) :]:
            outcome["commits"] = new
        after = {**self._table(), "entry": self._entry(f"t_{self.kind}"), "entry of another": self._entry("other")}
        outcome |= {key: value for key, value in after.items() if value != self.before.get(key)}
        self.before = after
        return outcome

    def clear(self) -> None:
        """Drop the leftovers of a life."""
        for name in ("other", f"t_{self.kind}"):
            if self.catalog.tableExists(DATABASE, name):
                is_view = str(self.catalog.getTable(DATABASE, name).tableType().name()) == "VIEW"
                self.spark.sql(f"DROP {'VIEW' if is_view else 'TABLE'} {DATABASE}.{name}")
        for key in _SETTINGS:
            self.spark.conf.unset(key)

    # -- observations -----------------------------------------------------------------------------------------------------------

    def _answer(self, text: str, columns: Sequence[str] | None) -> Outcome:
        actual = self.spark.sql(text)
        schema = actual.schema
        if not schema.fields:
            actual.collect()
            return {}
        chosen = actual.select(*columns) if columns else actual
        rows = [] if columns == () else sorted((self._plain(list(row)) for row in chosen.collect()), key=str)
        return {"answers": schema.simpleString(), **({"answer": rows} if rows else {})}

    def _commits(self) -> list[Outcome]:
        log = self.path / "_delta_log"
        files = sorted(log.glob("*[0-9].json")) if log.is_dir() else []
        infos = [
            next(action["commitInfo"] for line in file.read_text().splitlines() if "commitInfo" in (action := json.loads(line)))
            for file in files
        ]
        return [self._commit(info) for info in infos]

    def _commit(self, info: Mapping[str, Any]) -> Outcome:
        metrics = info.get("operationMetrics", {})
        return {
            "operation": info["operation"],
            "parameters": self._plain(info["operationParameters"]),
            "metrics": {name: value if _ROWS.search(name) else "…" for name, value in sorted(metrics.items())},
            "isBlindAppend": info.get("isBlindAppend"),
            "isolationLevel": info.get("isolationLevel"),
        }

    def _table(self) -> Outcome:
        table = Table(str(self.path))
        if not table.exists():
            return {}
        snapshot = table.snapshot()
        metadata, protocol = snapshot.metadata, snapshot.protocol
        rows = [tuple(row.values()) for row in table.to_arrow().to_pylist()]
        return {
            "rows": sorted((self._plain(list(row)) for row in rows), key=str),
            "schema": self._plain(json.loads(metadata.schema_string))["fields"],
            "partitioned by": list(metadata.partition_columns),
            "properties": self._plain(dict(sorted(metadata.configuration.items()))),
            "description": metadata.description,
            "protocol": [
                protocol.min_reader_version,
                protocol.min_writer_version,
                *(sorted(features or ()) for features in (protocol.reader_features, protocol.writer_features)),
            ],
        }

    def _entry(self, name: str) -> Outcome | None:
        if not self.catalog.tableExists(DATABASE, name):
            return None
        actual = self.catalog.getTable(DATABASE, name)
        dictionary = Jvm.of(self.spark).dictionary
        properties, storage = dictionary(actual.properties()), dictionary(actual.storage().properties())
        return {
            "type": str(actual.tableType().name()),
            "provider": str(actual.provider().get()) if actual.provider().isDefined() else None,
            "schema": json.loads(str(actual.schema().json()))["fields"],
            "partitions": int(actual.partitionColumnNames().size()),
            "properties": {key: self._plain(value) for key, value in sorted(properties.items()) if not _is_of_the_run(key)},
            "storage": {key: self._plain(value) for key, value in sorted(storage.items()) if not _is_of_the_run(key)},
            "comment": str(actual.comment().get()) if actual.comment().isDefined() else None,
            "location": self._plain(str(actual.location().getPath())) if actual.storage().locationUri().isDefined() else None,
        }

    def _plain(self, value: Any) -> Any:
        """The value in the form that JSON has, and in which two runs are equal."""
        match value:
            case dict():
                return {str(key): self._plain(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self._plain(inner) for inner in value]
            case None | bool() | int() | float():
                return value
        text = str(value).replace(str(self.path), "{path}").replace(str(self.folder), "{folder}")
        text = text.replace(str(self.folder.parent / "db"), "{warehouse}")
        text = text.replace(f"{DATABASE}.t_{self.kind}", "{t}").replace(f"t_{self.kind}", "{bare}")
        return _EXPRESSION_ID.sub("#", _UUID.sub("{uuid}", text))


def _is_of_the_run(key: str) -> bool:
    """Whether a property of an entry belongs to the catalog, or depends on the time."""
    return key.startswith(("transient", "view.")) or key in ("delta.lastCommitTimestamp", "serialization.format")


def _error(error: Exception) -> str:
    """As a program may catch it: the class of PySpark, and the condition."""
    kind = next(
        (known.__name__ for known in type(error).__mro__ if known.__module__.startswith("pyspark.errors")), type(error).__name__
    )
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return f"{kind} {condition}" if condition else kind
