"""The plans of the versions that a session has read, so that a further query of a version does not create its plan again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.scan.relation import read_snapshot

_MOST_PLANS = 64
_SETTINGS = (
    *("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive"),
    *("spark.sql.readSideCharPadding", "spark.sql.legacy.charVarcharAsString"),
)
"""The settings that a plan depends on, besides its table."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The plan of a version."""

    snapshot: Snapshot
    settings: str
    plan: JavaObject


class SnapshotPlans:
    """The most recently created plans of a session: for each table one that follows it, and one that does not.

    Each query gets a copy with columns of its own, as in delta-spark, so that two frames of one table can be joined by
    `one["id"] == other["id"]`. ``PlanCopy.java`` copies node by node, since Spark's own copies lose the hidden output of a projection, which
    provides `_metadata`.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._jvm = Jvm.of(spark)
        self._plans: OrderedDict[tuple[str, bool], _Plan] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, spark: SparkSession) -> SnapshotPlans:
        """Return the plans of a classic session."""
        return _OF_SESSIONS.get(spark) or _OF_SESSIONS.setdefault(spark, cls(spark))

    def named_plan(self, spark: SparkSession, snapshot: Snapshot, follows: Table | None) -> JavaObject:
        """Return a new copy of the plan for the catalog; an alias surrounds it, so that Spark never takes a bare relation for a folder of
        Parquet files to write into.

        Args:
            follows: see `tahoe.spark.scan.relation.read_snapshot`.
        """
        plan, _ = self._plan(spark, snapshot, follows)
        return self._copier().namedCopy(plan)

    def frame(self, spark: SparkSession, snapshot: Snapshot, follows: Table | None) -> DataFrame:
        """Return the rows of a snapshot, as `read_snapshot` without options."""
        plan, is_new = self._plan(spark, snapshot, follows)
        # The first frame needs no copy, which would compile a class in a new process.
        return self._jvm.frame(spark._jsparkSession, plan if is_new else self._copier().copy(plan), spark)

    def _plan(self, spark: SparkSession, snapshot: Snapshot, follows: Table | None) -> tuple[JavaObject, bool]:
        """Return the plan of a snapshot, and whether it is new."""
        if snapshot.config.column_mapping_mode == "id":  # the relation has a copy of the session with its present settings
            return _plan_of(read_snapshot(spark, snapshot, follows=follows)), True
        key = (snapshot.store.url, follows is None)
        with self._lock:
            stored = self._plans.get(key)
        # The handles of a table share its snapshots, so an equal snapshot is one of the same store, with the same options.
        if stored is not None and stored.snapshot is snapshot and stored.settings == self._settings(spark):
            return stored.plan, False
        settings = "\0".join(spark.conf.get(setting, None) or "null" for setting in _SETTINGS)
        plan = _plan_of(read_snapshot(spark, snapshot, follows=follows))
        with self._lock:
            self._plans[key] = _Plan(snapshot, settings, plan)
            self._plans.move_to_end(key)
            while len(self._plans) > _MOST_PLANS:
                self._plans.popitem(last=False)
        return plan, True

    def _settings(self, spark: SparkSession) -> str:
        """Return the values of the settings, in one call; "null" for those without a value."""
        return str(self._copier().settings(spark._jsparkSession, "\0".join(_SETTINGS)))

    def _copier(self) -> JavaObject:
        return self._jvm.cached("PlanCopy", lambda: compiled_object(self._jvm, "PlanCopy"))


_OF_SESSIONS: WeakKeyDictionary[SparkSession, SnapshotPlans] = WeakKeyDictionary()


def _plan_of(frame: DataFrame) -> JavaObject:
    return frame._jdf.logicalPlan()
