"""OpenLineage: after each commit, a run with the table as its output (`tahoe.observe.lineage_queue`), if `TAHOE_OPENLINEAGE` is on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tahoe.base.events import Event, Finish
from tahoe.base.lazy import late_modules

if TYPE_CHECKING:
    from tahoe.observe import lineage_facts, lineage_queue
    from tahoe.txn import commit as commits
else:
    lineage_facts, lineage_queue = late_modules("tahoe.observe", "lineage_facts", "lineage_queue")
    (commits,) = late_modules("tahoe.txn", "commit")

SWITCH = "TAHOE_OPENLINEAGE"
"""The environment variable that switches lineage on."""

# As of `TAHOE_ENABLE` (docs/design/038).
_ON, _OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def lineage_is_on(environment: Mapping[str, str]) -> bool:
    """Whether `SWITCH` is on: ``1``, ``true``, ``yes`` or ``on``. An unknown value is off, and causes a `TahoeWarning`."""
    text = environment.get(SWITCH, "").strip().lower()
    if text not in (*_ON, *_OFF):
        from tahoe.settings.warn_once import warn_once  # most processes need no warning

        warn_once(
            f"{SWITCH} {text}", f"The environment variable {SWITCH} is '{text}' and has no effect: set it to true or false."
        )
    return text in _ON


class Lineage:
    """The observer that sends the commits of the process as lineage."""

    def is_on(self, name: str) -> bool:
        """See `Observer.is_on`."""
        return name == "commit" and lineage_is_on(os.environ)

    def begin(self, name: str, table: str) -> Finish:
        """See `Observer.begin`."""
        return _committed

    def happened(self, event: Event) -> None:
        """See `Observer.happened`; lineage has no such events."""


def _committed(event: Event) -> None:
    if isinstance(event.subject, commits.Committed):
        lineage_queue.LINEAGE_QUEUE.submit(lineage_facts.facts_of(event.subject))
