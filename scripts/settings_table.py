"""Print docs/settings.md: the settings of delta-spark with their states. `make docs` runs it; a test compares the page."""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.settings.dataframe_options import READER_OPTIONS, STREAM_READER_OPTIONS, WRITER_OPTIONS
from tahoe.settings.property_settings import PROPERTIES
from tahoe.settings.session_settings import SESSION_SETTINGS
from tahoe.settings.setting import Setting, State
from tahoe.settings.stream_writer_options import STREAM_WRITER_OPTIONS

HEAD = """# Settings

The state of each setting of delta-spark, printed from `tahoe/settings/` by `make docs`. "Warns once" means a Python warning,
`tahoe.TahoeWarning`, once per process and name, if the setting has another value than the usual one. A refused setting raises
`tahoe.Unsupported` with its name."""

SECTIONS = (
    ("Table properties", "property", PROPERTIES),
    ("Writer options", "option", WRITER_OPTIONS),
    ("Reader options", "option", READER_OPTIONS),
    ("Stream reader options", "option", STREAM_READER_OPTIONS),
    ("Stream writer options", "option", STREAM_WRITER_OPTIONS),
    ("Session settings", "setting", SESSION_SETTINGS),
)


def row(setting: Setting) -> str:
    """Return one row of a table."""
    name = f"`{setting.name}…`" if setting.name.endswith(".") else f"`{setting.name}`"
    cells = [name, setting.state.value, setting.why or "–", ", ".join(f"`{value}`" for value in setting.usual) or "–"]
    return "| " + " | ".join(cells) + " |"


def section(title: str, kind: str, settings: Sequence[Setting]) -> str:
    """Return a heading, the number of settings in each state, and one row for each setting."""
    counts = ", ".join(
        f"{sum(setting.state is state for setting in settings)} {state.value.partition(';')[0]}" for state in State
    )
    lines = [f"## {title}", "", f"{len(settings)}: {counts}.", "", f"| {kind} | state | reason | usual |", "|---|---|---|---|"]
    return "\n".join([*lines, *map(row, settings)])


def page() -> str:
    """Return the content of docs/settings.md."""
    return "\n\n".join([HEAD, *(section(title, kind, settings) for title, kind, settings in SECTIONS)])


if __name__ == "__main__":
    print(page())
