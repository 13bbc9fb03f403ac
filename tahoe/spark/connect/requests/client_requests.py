"""The requests of PySpark's Connect client in sessions with Tahoe: each gets options for its reads of Delta tables.

The server keeps the relation of a plan that it has executed, with the version that it read. So each read has the number of its request in
an option, which makes it a new relation: a DataFrame that is used again shows the newest version. A read that pushes filters, or reads only
some columns, has a number of its own: then the server shares the relation with no other plan.

All reads of a table in one request read one version (`tahoe.spark.connect.requests.query_versions`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol
from weakref import ReferenceType, WeakKeyDictionary, ref

from tahoe.spark.connect.requests.file_functions import FILE_FUNCTIONS, refuse_file_functions
from tahoe.spark.connect.requests.hidden_metadata import hide_metadata
from tahoe.spark.connect.requests.plan_reads import delta_reads, reads_delta, sources
from tahoe.spark.connect.requests.query_columns import QueryNames, names_in
from tahoe.spark.connect.requests.query_versions import forget_version, path_of_newest, read_one_version
from tahoe.spark.portable.file_metadata import METADATA
from tahoe.store.location import table_url
from tahoe.txn.commit import Committed

_NUMBERS = count()
_SESSIONS: WeakKeyDictionary[Any, _ClientSession] = WeakKeyDictionary()
"""The client of each session with Tahoe → its session."""
_PLANS = {"plan", "relation", "other"}
"""The arguments of ``SparkConnectClient._analyze`` that are plans or relations."""


class SubqueryViews(Protocol):
    """The temporary views that a request reads in place of Delta tables (`tahoe.spark.entry_points.connect_subqueries`)."""

    def restore(self, message: Any) -> None:
        """Put the user's texts into a plan that the server returns."""

    def drop(self) -> None:
        """Drop the views."""


@dataclass(frozen=True, slots=True)
class _ClientSession:
    """A session with Tahoe.

    Args:
        spark: a reference to the session, which refers to the client.
        views_of_subqueries: creates the views that the subqueries in a plan's expressions read, and changes their texts.
        persisted: the ids of the plans that the server keeps in memory, each with the number of its reads, by which the server finds it.
        requests: the arguments with which these plans were persisted, by their ids.
    """

    spark: ReferenceType[Any]
    views_of_subqueries: Callable[[Any, Any], SubqueryViews | None]
    persisted: dict[int, int] = field(default_factory=dict)
    requests: dict[int, dict[str, Any]] = field(default_factory=dict)


def enable(spark: Any, views_of_subqueries: Callable[[Any, Any], SubqueryViews | None]) -> None:
    """Set the options of reads in the requests of a session of Spark Connect.

    Args:
        views_of_subqueries: creates the views that the subqueries in a plan's expressions read, and changes their texts.
    """
    _SESSIONS.setdefault(spark.client, _ClientSession(ref(spark), views_of_subqueries))


def is_enabled(client: Any) -> bool:
    """Whether a client belongs to a session with Tahoe."""
    return client in _SESSIONS


def execute(original: Callable[..., Any], client: Any, request: Any, *positional: Any, **named: Any) -> Any:
    """Run ``SparkConnectClient._execute_and_fetch_as_iterator`` with the options in the request's plan."""
    if client not in _SESSIONS:
        return original(client, request, *positional, **named)
    session = _SESSIONS[client]
    with ExitStack() as ending:
        views = session.views_of_subqueries(session.spark(), request.plan)
        if views is not None:
            ending.callback(views.drop)
        _set_options(request.plan, session)
        answers = original(client, request, *positional, **named)
        return answers if views is None else _answered(answers, views, ending.pop_all())


def _answered(answers: Iterator[Any], views: SubqueryViews, ending: ExitStack) -> Iterator[Any]:
    """Yield the answers to a request, and drop its views then."""
    with ending:
        for answer in answers:
            if isinstance(answer, dict) and "sql_command_result" in answer:  # of a query: the plan of its DataFrame
                views.restore(answer["sql_command_result"])
            yield answer


def analyze(original: Callable[..., Any], client: Any, method: str, **arguments: Any) -> Any:
    """Run ``SparkConnectClient._analyze`` with the numbers of persisted plans, and note which plans are persisted."""
    with ExitStack() as ending:
        if client in _SESSIONS:
            _prepare_analysis(_SESSIONS[client], method, arguments, ending)
        return original(client, method, **arguments)


def _prepare_analysis(session: _ClientSession, method: str, arguments: Mapping[str, Any], ending: ExitStack) -> None:
    persisted, plan_id = session.persisted, _id_of(arguments.get("relation"))
    if method == "persist":
        persisted.setdefault(plan_id, next(_NUMBERS))
        if reads_delta(arguments["relation"]):
            session.requests[plan_id] = _copied(arguments)
    for name in _PLANS & arguments.keys():
        views = session.views_of_subqueries(session.spark(), arguments[name])
        if views is not None:
            ending.callback(views.drop)
        _prepare(arguments[name], session)
        _set_numbers(sources(arguments[name], persisted, None))
    if method == "unpersist":
        persisted.pop(plan_id, None)
        session.requests.pop(plan_id, None)


def persist_again(committed: Committed) -> None:
    """Persist the plans again that read the newest version of a changed table, as a classic session does: the server keeps their old rows.

    The server computes the new rows when a plan is used the next time.
    """
    for client, session in [(client, session) for client, session in _SESSIONS.items() if not client.is_closed]:
        for request in list(session.requests.values()):
            reads = (path_of_newest(source) for source, _ in sources(request["relation"], session.persisted, None))
            if committed.snapshot.store.url in (table_url(path) for path in reads if path is not None):
                client._analyze("unpersist", relation=_copied(request)["relation"], blocking=False)
                client._analyze("persist", **_copied(request))


def _copied(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a request with a relation of their own, which may get options."""
    relation = type(request["relation"])()
    relation.CopyFrom(request["relation"])
    return {**request, "relation": relation}


def _id_of(relation: Any) -> int:
    return 0 if relation is None else int(relation.common.plan_id)


def reads_newest(rows: Any, url: str) -> bool:
    """Whether a DataFrame reads the newest version of a table from its files, and not from rows that the server keeps in memory.

    Args:
        url: of the table.
    """
    client = rows.sparkSession.client
    persisted = _SESSIONS[client].persisted if client in _SESSIONS else {}
    reads = (path_of_newest(source) for source, kept in sources(rows._plan.to_proto(client), persisted, None) if kept is None)
    return url in (table_url(path) for path in reads if path is not None)


def forget_persisted(client: Any) -> None:
    """Note that the server has no plan in memory any more."""
    if client in _SESSIONS:
        _SESSIONS[client].persisted.clear()
        _SESSIONS[client].requests.clear()


def _set_options(plan: Any, session: _ClientSession) -> None:
    """Tell the data sources to take filters, and the names in the plan; make each read a new one; let all read one version."""
    names = _prepare(plan, session)
    if names is None:
        return
    reads = list(delta_reads(plan, session.persisted))
    request = next(_NUMBERS)
    numbered = list(sources(plan, session.persisted, request))
    _set_numbers(numbered)
    read_one_version(session.spark(), [source for source, number in numbered if number == request])
    for read in reads:
        number = next(_NUMBERS)
        if read.pushes:
            read.source.options["pushFilters"] = f"true:{number}"
        if read.by_name and names.are_all and "queryNames" not in read.source.options:
            read.source.options["queryNames"] = f"{number}:{json.dumps(sorted(names.names))}"


def _prepare(message: Any, session: _ClientSession) -> QueryNames | None:
    """Provide the metadata of files to a plan, or a part of one; return its names, or None if it reads no Delta table.

    Raises `Unsupported` for functions such as ``input_file_name``.
    """
    if not reads_delta(message):
        return None
    names = names_in(message)
    if names.names & FILE_FUNCTIONS:
        refuse_file_functions(message)
    if METADATA in names.names:
        hide_metadata(session.spark(), message)
    return names


def _set_numbers(numbered: Iterable[tuple[Any, int | None]]) -> None:
    """Set the numbers of reads of Delta tables (`sources`); those without a number stay as they are."""
    for source, own in numbered:
        # The relation of a statement, which the server returns, has the number of its request. Other values are the user's.
        if own is not None and source.options.get("pushFilters", "false:").startswith("false:"):
            source.options["pushFilters"] = f"false:{own}"
        forget_version(source)
