"""The tables and folders that a query reads, for the lineage of the commit that writes its rows."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from tahoe.base.exceptions import TahoeError, Unsupported
from tahoe.observe.lineage import lineage_is_on
from tahoe.spark.jvm.bridge import JavaObject, is_classic
from tahoe.spark.jvm.records import items
from tahoe.spark.scan.renewal import scan_of
from tahoe.store.location import table_url

logger = logging.getLogger(__name__)


def inputs_of(frame: DataFrame) -> tuple[str, ...]:
    """Return the URLs of the Delta tables and of the folders of files in the plan of a query; nothing while lineage is off.

    Other sources, such as JDBC, are not known. A plan that cannot be examined has no inputs: that is logged, and the write continues.
    """
    if not lineage_is_on(os.environ) or not is_classic(frame.sparkSession):
        return ()
    try:
        leaves = items(frame._jdf.queryExecution().analyzed().collectLeaves())
        return tuple(dict.fromkeys(url for leaf in leaves for url in _urls(leaf)))
    except (Py4JError, TahoeError) as error:
        logger.warning("the inputs of a query are unknown to lineage: %s", type(error).__name__)
        return ()


def _urls(leaf: JavaObject) -> Iterator[str]:
    index = scan_of(leaf)
    if index is not None:
        yield index.snapshot.store.url
    elif str(leaf.getClass().getSimpleName()) == "LogicalRelation":
        relation = leaf.relation()
        if str(relation.getClass().getSimpleName()) == "HadoopFsRelation":
            yield from (_url(str(path.toString())) for path in items(relation.location().rootPaths()))


def _url(path: str) -> str:
    try:
        return table_url(path)
    except Unsupported:  # storage that only Hadoop reads
        return path
