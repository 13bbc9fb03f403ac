"""Examines the Iceberg catalogs that a table's property names: whether each answers in time, and has an entry of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tahoe.base.exceptions import TahoeError
from tahoe.cli.examination.findings import Finding, State
from tahoe.uniform.catalogs.configured import ConfiguredCatalogs, catalog_names
from tahoe.uniform.catalogs.pointers import CatalogCalls, CatalogQueries, Pointer

SECONDS = 10.0
"""The longest time that all catalogs together may take."""

_SUBJECT = "catalogs"


def of_catalogs(url: str, properties: Mapping[str, str], seconds: float = SECONDS) -> Iterator[Finding]:
    """Yield a finding for each catalog of the table.

    Args:
        url: the table's URL.
        properties: of the table.
        seconds: the longest time to wait for all of them.
    """
    try:
        names = catalog_names(properties)
    except TahoeError as error:
        yield Finding(_SUBJECT, State.PROBLEM, str(error), "Correct the property.")
        return
    if not names:
        yield Finding(_SUBJECT, State.OK, "The table names no Iceberg catalog besides its own folder.")
        return
    catalogs, calls = ConfiguredCatalogs(), CatalogCalls()
    queries = CatalogQueries([Pointer(url, catalogs.named(name), calls) for name in names])
    answers, errors = queries.answers(seconds)
    yield from (_of_answer(name, answers.get(name), errors.get(name)) for name in names)


def _of_answer(name: str, location: str | None, error: TahoeError | None) -> Finding:
    if error is not None:
        remedy = (
            "Check its configuration in ~/.pyiceberg.yaml or PYICEBERG_CATALOG__… variables, its credentials and the network."
        )
        return Finding(_SUBJECT, State.PROBLEM, str(error), remedy)
    if location is None:
        return Finding(
            _SUBJECT, State.NOTE, f"Catalog {name} answers and has no such table.", "Register it with `tahoe uniform sync`."
        )
    return Finding(_SUBJECT, State.OK, f"Catalog {name} answers and has the table.")
