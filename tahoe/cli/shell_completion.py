"""`tahoe completion`: the script with which a shell completes commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

COMPLETE_VARIABLE = "_TAHOE_COMPLETE"
"""The environment variable with which a completion script runs `tahoe`."""


class Shell(StrEnum):
    """Shells for which there is a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


Name = Annotated[Shell, typer.Argument(help="The shell.", show_default=False)]


def prepare_completion() -> None:
    """Make the command answer completion scripts; typer does it only for applications with its own options for completion."""
    from typer._completion_classes import completion_init

    completion_init()


def completion(shell: Name) -> None:
    """Print the completion script of a shell: tahoe completion bash > ~/.local/share/bash-completion/completions/tahoe"""
    from typer._completion_shared import get_completion_script

    typer.echo(get_completion_script(prog_name="tahoe", complete_var=COMPLETE_VARIABLE, shell=shell))
