"""Arguments that the commands share: the table's path, its storage options, JSON or text."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

from tahoe.base.exceptions import InvalidRequest

if TYPE_CHECKING:
    from tahoe.api.table import Table
    from tahoe.coordinator.sql_coordinator import SqlCoordinator


COORDINATOR = "TAHOE_COORDINATOR"
TIME_ZONE = "TAHOE_TIME_ZONE"
"""The environment variable with the URL of the coordinator of catalog-managed tables; not an argument, since it may contain a password."""

# The exit codes other than 0.
FOUND_SOMETHING = 1
NO_ANSWER = 2

Path = Annotated[
    str, typer.Argument(help="The table's folder or URL: dir, s3://bucket/table, gs://…, az://….", show_default=False)
]
StorageOptions = Annotated[
    list[str],
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="A storage option; repeatable. Leave credentials to the environment (AWS_…, GOOGLE_…, AZURE_…).",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
AtVersion = Annotated[int | None, typer.Option("--at", metavar="VERSION", help="Use this version instead of the newest.", min=0)]


def open_table(path: str, options: list[str]) -> Table:
    """Return the table at `path`, with the coordinator and the time zone from the environment (`COORDINATOR`, `TIME_ZONE`).

    Nothing is read yet.

    Args:
        options: ``name=value`` texts.
    """
    from tahoe.api.table import Table  # importing Arrow and the store would dominate `tahoe --help`

    time_zone = os.environ.get(TIME_ZONE) or "UTC"
    return Table(path, storage_options=options_of(options), time_zone=time_zone, coordinator=named_coordinator())


def named_coordinator() -> SqlCoordinator | None:
    """Return the coordinator named by the environment variable `COORDINATOR`, or None."""
    url = os.environ.get(COORDINATOR)
    if not url:
        return None
    from tahoe.coordinator.sql_coordinator import SqlCoordinator

    return SqlCoordinator(url)


def options_of(texts: list[str]) -> dict[str, str]:
    """Parse storage options from ``name=value`` texts."""
    return dict(_pair(text) for text in texts)


def with_parameters(
    call: Callable[..., None], command: Callable[..., None], replaced: str, parameters: Sequence[Parameter]
) -> Callable[..., None]:
    """Return `call` with the signature of `command`, in which `parameters` take the place of one parameter; all are keywords."""
    hints = get_type_hints(command, include_extras=True)
    listed: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        if parameter.name == replaced:
            listed += parameters
        else:
            listed.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]))
    call.__signature__ = Signature(listed)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in listed}
    return call


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidRequest(
            f"The storage option '{name}' has no value: write it as --option name=value.",
            code="TAHOE_STORAGE_OPTION",
            option=name,
        )
    return name, value
