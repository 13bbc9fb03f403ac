"""One setting of delta-spark's, and what becomes of it here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tahoe.exceptions import Unsupported
from tahoe.knobs.told import tell_once

__all__ = ["Knob", "State", "turned"]


class State(Enum):
    """What becomes of a setting."""

    WORKS = "works"
    LATER = "comes with a later version; told once"
    NOTHING = "has no meaning here; told once"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting.

    Args:
        name: as the reference spells it.
        state: what becomes of it.
        why: what stands behind the state, in a sentence for whoever set it; empty where it works.
        kind: ``table property``, ``writer's option``, ``reader's option`` or ``session setting``.
        usual: values, in small letters, that ask for what is done anyway: setting one of them is neither told nor refused.
    """

    name: str
    state: State
    why: str = ""
    kind: str = ""
    usual: tuple[str, ...] = ()


def turned(knob: Knob, value: str) -> None:
    """Somebody has given the setting this value: tell once what does not come of it, or refuse it.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    if knob.state is State.WORKS or value.strip().lower() in knob.usual:
        return
    shown = f"The {knob.kind} '{knob.name}' = '{value}'"
    if knob.state is State.REFUSED:
        raise Unsupported(
            f"{shown} is not supported by this version of Tahoe: {knob.why} Leave it out.",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            option=knob.name,
        )
    tell_once(f"{knob.kind} {knob.name.lower()}", f"{shown} is not followed: {knob.why}")
