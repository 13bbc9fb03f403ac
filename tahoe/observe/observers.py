"""The observers of every process that works with tables."""

from __future__ import annotations

from tahoe.base.events import observe_with
from tahoe.observe.lineage import Lineage
from tahoe.observe.log_records import LogRecords
from tahoe.observe.spans import Spans


def observe_this_process() -> None:
    """Add the observers to the process; each looks for itself whether it is switched on. Call it once."""
    observe_with(LogRecords(), Spans(), Lineage())
