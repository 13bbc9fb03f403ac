"""A setting of delta-spark and its state in Tahoe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tahoe.base.exceptions import Unsupported
from tahoe.settings.warn_once import warn_once


class State(Enum):
    """How Tahoe treats a setting."""

    WORKS = "works"
    PLANNED = "planned for a later version; warns once"
    NO_EFFECT = "no effect; warns once"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of delta-spark.

    Args:
        name: spelled as in delta-spark.
        state: how Tahoe treats it.
        why: the reason for the state, one sentence for the user who set it; empty where the setting works.
        kind: ``table property``, ``writer's option``, ``reader's option`` or ``session setting``.
        usual: lower-case values that match Tahoe's fixed behavior: such a value causes neither a warning nor an error.
    """

    name: str
    state: State
    why: str = ""
    kind: str = ""
    usual: tuple[str, ...] = ()


def check_setting(setting: Setting, value: str) -> None:
    """Check a setting that a user set to `value`: warn once if it has no effect, raise if it is refused.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    if setting.state is State.WORKS or value.strip().lower() in setting.usual:
        return
    assignment = f"The {setting.kind} '{setting.name}' = '{value}'"
    if setting.state is State.REFUSED:
        raise Unsupported(
            f"{assignment} is not supported by this version of Tahoe: {setting.why} Leave it out.",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            option=setting.name,
        )
    warn_once(f"{setting.kind} {setting.name.lower()}", f"{assignment} is not followed: {setting.why}")
