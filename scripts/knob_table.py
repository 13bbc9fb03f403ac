"""knob_table.py: prints docs/knobs.md, the settings of delta-spark as code has them. `make docs` writes it; a test holds it."""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.knobs.knob import Knob, State
from tahoe.knobs.of_options import READER_OPTIONS, STREAM_READER_OPTIONS, WRITER_OPTIONS
from tahoe.knobs.of_properties import PROPERTIES
from tahoe.knobs.of_sessions import CONFS

HEAD = """# Settings

What becomes of each setting that delta-spark knows, printed from `tahoe/knobs/` by `make docs`. "Told once" is a Python warning,
`tahoe.TahoeWarning`, once in a process for each name, when somebody gives the setting another value than the usual one; what is refused
raises `tahoe.Unsupported` and names it."""

SECTIONS = (
    ("Table properties", "property", PROPERTIES),
    ("Options of writers", "option", WRITER_OPTIONS),
    ("Options of readers", "option", READER_OPTIONS),
    ("Options of readers of streams", "option", STREAM_READER_OPTIONS),
    ("Settings of a session", "setting", CONFS),
)


def row(knob: Knob) -> str:
    """One line of a table."""
    name = f"`{knob.name}…`" if knob.name.endswith(".") else f"`{knob.name}`"
    cells = [name, knob.state.value, knob.why or "–", ", ".join(f"`{value}`" for value in knob.usual) or "–"]
    return "| " + " | ".join(cells) + " |"


def section(title: str, what: str, knobs: Sequence[Knob]) -> str:
    """A heading, what is how often, and a line a setting."""
    counts = ", ".join(f"{sum(knob.state is state for knob in knobs)} {state.value.partition(';')[0]}" for state in State)
    lines = [f"## {title}", "", f"{len(knobs)}: {counts}.", "", f"| {what} | state | why | usual |", "|---|---|---|---|"]
    return "\n".join([*lines, *map(row, knobs)])


def page() -> str:
    """The whole of docs/knobs.md."""
    return "\n\n".join([HEAD, *(section(*one) for one in SECTIONS)])


if __name__ == "__main__":
    print(page())
