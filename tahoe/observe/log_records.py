"""A log record for each event, with its values as fields, so that a formatter can write them as JSON."""

from __future__ import annotations

import logging

from tahoe.base.events import Event, Finish
from tahoe.base.log_fields import about

logger = logging.getLogger(__name__)

_DETAILS = frozenset({"plan", "checkpoint", "log_cleanup"})
"""Events at the level DEBUG; all others are at INFO. An operation that fails is reported to its caller, and so not a warning here."""


class LogRecords:
    """The observer that logs; on while the logger is enabled for the level of the event."""

    def is_on(self, name: str) -> bool:
        """See `Observer.is_on`."""
        return logger.isEnabledFor(_level(name))

    def begin(self, name: str, table: str) -> Finish:
        """See `Observer.begin`."""
        return _log

    def happened(self, event: Event) -> None:
        """See `Observer.happened`."""
        _log(event)


def _level(name: str) -> int:
    return logging.DEBUG if name in _DETAILS else logging.INFO


def _log(event: Event) -> None:
    fields = {"event": event.name, **event.fields}
    if event.duration_ms is not None:
        fields["duration_ms"] = event.duration_ms
    if event.error is not None:
        fields["error"] = event.error
    subject = event.table if event.version is None else f"version {event.version} of {event.table}"
    values = ", ".join(f"{name}={value}" for name, value in fields.items() if name != "event")
    logger.log(_level(event.name), "%s: %s (%s)", event.name, subject, values, extra=about(event.table, event.version, **fields))
