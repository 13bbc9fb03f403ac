"""settings_table.py: prints docs/settings.md, the settings of delta-spark as code has them. `make docs` writes it; a test holds it."""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.settings.dataframe_options import READER_OPTIONS, STREAM_READER_OPTIONS, WRITER_OPTIONS
from tahoe.settings.property_settings import PROPERTIES
from tahoe.settings.session_settings import SESSION_SETTINGS
from tahoe.settings.setting import Setting, State
from tahoe.settings.stream_writer_options import STREAM_WRITER_OPTIONS

HEAD = """# Settings

What becomes of each setting that delta-spark knows, printed from `tahoe/settings/` by `make docs`. "Told once" is a Python warning,
`tahoe.TahoeWarning`, once in a process for each name, when somebody gives the setting another value than the usual one; what is refused
raises `tahoe.Unsupported` and names it."""

SECTIONS = (
    ("Table properties", "property", PROPERTIES),
    ("Options of writers", "option", WRITER_OPTIONS),
    ("Options of readers", "option", READER_OPTIONS),
    ("Options of readers of streams", "option", STREAM_READER_OPTIONS),
    ("Options of writers of streams", "option", STREAM_WRITER_OPTIONS),
    ("Settings of a session", "setting", SESSION_SETTINGS),
)


def row(setting: Setting) -> str:
    """One line of a table."""
    name = f"`{setting.name}…`" if setting.name.endswith(".") else f"`{setting.name}`"
    cells = [name, setting.state.value, setting.why or "–", ", ".join(f"`{value}`" for value in setting.usual) or "–"]
    return "| " + " | ".join(cells) + " |"


def section(title: str, what: str, settings: Sequence[Setting]) -> str:
    """A heading, what is how often, and a line a setting."""
    counts = ", ".join(
        f"{sum(setting.state is state for setting in settings)} {state.value.partition(';')[0]}" for state in State
    )
    lines = [f"## {title}", "", f"{len(settings)}: {counts}.", "", f"| {what} | state | why | usual |", "|---|---|---|---|"]
    return "\n".join([*lines, *map(row, settings)])


def page() -> str:
    """The whole of docs/settings.md."""
    return "\n\n".join([HEAD, *(section(*one) for one in SECTIONS)])


if __name__ == "__main__":
    print(page())
