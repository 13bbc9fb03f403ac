"""`tahoe sql`: a query over tables in DuckDB's SQL."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.missing_extra import MissingExtra
from tahoe.cli.shell.arguments import Path, StorageOptions, open_table
from tahoe.cli.shell.output import ROWS, Output, prints
from tahoe.cli.shell.startup import import_anything

if TYPE_CHECKING:
    import duckdb

    from tahoe.snapshot.snapshot import Snapshot

Query = Annotated[str, typer.Argument(help="A query in DuckDB's SQL; the table is named t.", show_default=False)]
Others = Annotated[
    list[str], typer.Option("--table", "-t", metavar="NAME=PATH", help="Another table of the query, with its name; repeatable.")
]


@prints(ROWS)
def sql(
    path: Path,
    query: Query,
    output: Output,
    table: Others = [],  # noqa: B006 - read by typer, never changed
    option: StorageOptions = [],  # noqa: B006
) -> None:
    """Run a query on the newest version: tahoe sql PATH 'SELECT day, count(*) FROM t GROUP BY day'. Needs the extra sql."""
    paths = {"t": path, **dict(_named(text) for text in table)}
    import_anything()
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "tahoe sql needs DuckDB, which is not installed: pip install 'tahoe-delta[sql]'", package="duckdb", extra="sql"
        ) from error
    snapshots = {name: open_table(of_table, option).snapshot() for name, of_table in paths.items()}
    with duckdb.connect() as connection:
        try:
            output.rows(_answer(connection, query, snapshots))
        except duckdb.Error as error:
            raise InvalidRequest(f"DuckDB refuses the query: {error}", code="TAHOE_SQL_QUERY") from error


def _named(text: str) -> tuple[str, str]:
    name, sign, path = text.partition("=")
    if not name.isidentifier() or not sign or not path:
        raise InvalidRequest(
            f"{text!r} is not a name and a path: write it as customers=/data/customers.", code="TAHOE_ARGUMENT_PAIR"
        )
    return name, path


def _answer(connection: duckdb.DuckDBPyConnection, query: str, snapshots: Mapping[str, Snapshot]) -> Any:
    import pyarrow as pa

    from tahoe.snapshot.to_frames import to_duckdb

    needed = columns_of(connection, query, {column.name for snapshot in snapshots.values() for column in snapshot.schema})
    for name, snapshot in snapshots.items():
        names = [column.name for column in snapshot.schema if needed is None or column.name in needed]
        # A count needs no column, but a stream has at least one.
        columns = tuple(names or [column.name for column in snapshot.schema][:1])
        to_duckdb(snapshot.scan(columns=columns), connection=connection).create_view(name)
    relation = connection.sql(query)
    return pa.table({}) if relation is None else relation.to_arrow_table()  # DuckDB 1 has no relation for COPY


def columns_of(connection: duckdb.DuckDBPyConnection, query: str, columns: Collection[str]) -> set[str] | None:
    """Return the columns that a query may need, or None for all.

    DuckDB reads a stream completely, so columns that the query does not mention are left out of it. A name in the query's syntax tree counts
    as a column of each table that has one of this name.

    Args:
        columns: the columns of all tables.
    """
    # All rows: DuckDB 2 refuses the next query of a connection while a result is unfinished.
    rows = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    tree = json.loads(rows[0][0]) if rows else {"error": True}
    by_lower_case = {name.lower(): name for name in columns}
    if tree["error"] or len(by_lower_case) < len(columns):
        return None
    needed = set[str]()
    for node in _nodes(tree):
        if node.get("type") == "STAR" or node.get("ref_type") == "NATURAL":
            return None
        mentioned = [*node.get("column_names", ()), *node.get("using_columns", ())]
        known = {by_lower_case[name.lower()] for name in mentioned if name.lower() in by_lower_case}
        if mentioned and not known:  # a whole row, or the name of another expression
            return None
        needed |= known
    return needed


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for member in tree:
            yield from _nodes(member)
