"""The private attributes of PySpark's Python classes that Tahoe uses, and whether an installation has them.

They are searched in PySpark's source, so `tahoe doctor` neither imports PySpark nor starts a session.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PrivateAttribute:
    """An attribute or method of a class.

    Args:
        module: the file of the class, relative to the folder of `pyspark`.
    """

    module: str
    owner: str
    name: str

    def __str__(self) -> str:
        where = "connect." if self.module.startswith("sql/connect/") else ""
        return f"{where}{self.owner}.{self.name}"


def _of(module: str, owner: str, *names: str) -> tuple[PrivateAttribute, ...]:
    return tuple(PrivateAttribute(module, owner, name) for name in names)


USED = (
    *_of("core/context.py", "SparkContext", "_conf", "_jsc"),
    *_of("errors/exceptions/captured.py", "CapturedException", "_desc", "_origin"),
    *_of("sql/session.py", "SparkSession", "_jsparkSession", "_jvm", "_parse_ddl"),
    *_of("sql/classic/dataframe.py", "DataFrame", "_jdf"),
    *_of("sql/classic/column.py", "Column", "_jc"),
    *_of("sql/catalog.py", "Catalog", "_sparkSession"),
    *_of("sql/readwriter.py", "DataFrameReader", "_jreader", "_spark"),
    *_of("sql/readwriter.py", "DataFrameWriter", "_df", "_jwrite", "_spark"),
    *_of("sql/readwriter.py", "DataFrameWriterV2", "_df", "_jwriter", "_spark"),
    *_of("sql/streaming/readwriter.py", "DataStreamReader", "_jreader", "_spark"),
    *_of("sql/streaming/readwriter.py", "DataStreamWriter", "_df", "_jwrite", "_spark", "_sq"),
    *_of("sql/connect/catalog.py", "Catalog", "_sparkSession"),
    *_of("sql/connect/client/core.py", "SparkConnectClient", "_analyze", "_execute_and_fetch_as_iterator", "_handle_error"),
    *_of("sql/connect/column.py", "Column", "_expr"),
    *_of("sql/connect/dataframe.py", "DataFrame", "_cached_schema", "_explain_string", "_plan"),
    *_of("sql/connect/expressions.py", "ColumnReference", "_unparsed_identifier"),
    *_of("sql/connect/expressions.py", "LiteralExpression", "_dataType", "_value"),
    *_of("sql/connect/expressions.py", "SQLExpression", "_expr"),
    *_of("sql/connect/expressions.py", "UnresolvedFunction", "_args", "_name"),
    *_of("sql/connect/plan.py", "CachedRemoteRelation", "_spark_session"),
    *_of("sql/connect/plan.py", "LogicalPlan", "_child", "_plan_id"),
    *_of("sql/connect/plan.py", "SubqueryAlias", "_alias"),
    *_of("sql/connect/readwriter.py", "DataFrameReader", "_client", "_format", "_options"),
    *_of("sql/connect/readwriter.py", "DataFrameWriter", "_df", "_spark", "_write"),
    *_of("sql/connect/session.py", "SparkSession", "_parse_ddl"),
    *_of("sql/connect/sql_formatter.py", "SQLStringFormatter", "_temp_views"),
    *_of("sql/connect/streaming/readwriter.py", "DataStreamReader", "_client", "_options"),
    *_of("sql/connect/streaming/readwriter.py", "DataStreamWriter", "_session", "_write_proto", "_write_stream"),
)
"""All that Tahoe uses; those of `connect` only with Spark Connect."""


def missing_attributes(folder: Path) -> list[PrivateAttribute]:
    """Return the attributes that the classes of the package `pyspark` in a folder do not have.

    Raises `OSError` or `SyntaxError`: a file that cannot be read.
    """
    classes = {module: _classes(folder / module) for module in dict.fromkeys(used.module for used in USED)}
    return [used for used in USED if used.name not in classes[used.module].get(used.owner, frozenset())]


def _classes(file: Path) -> dict[str, frozenset[str]]:
    """Return the attributes of each class in a file, which may be absent."""
    if not file.is_file():
        return {}
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name: frozenset(_attributes(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _attributes(owner: ast.ClassDef) -> Iterator[str]:
    """Yield the names of a class's methods, and of the attributes that its methods assign."""
    for node in ast.walk(owner):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr
