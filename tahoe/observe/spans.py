"""OpenTelemetry spans for operations: in the trace of the caller, if the process has a tracer provider.

Without OpenTelemetry's API in the process, or without a tracer provider, nothing happens, and nothing is imported: whoever sets a provider
has imported the API before.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from tahoe.base.events import Event, Finish
from tahoe.base.log_fields import FieldValue
from tahoe.base.version import __version__

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.trace import Span

_API = "opentelemetry.trace"


class Spans:
    """The observer that creates a span named ``tahoe.<event>`` for each operation, and span events for events without a duration."""

    def is_on(self, name: str) -> bool:
        """Whether the process has a tracer provider."""
        trace = sys.modules.get(_API)
        return trace is not None and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    def begin(self, name: str, table: str) -> Finish:
        """Start the span, and make it the current one of this thread, so that spans of nested operations are its children."""
        from opentelemetry import context, trace

        tracer = trace.get_tracer("tahoe", __version__)
        span = tracer.start_span(f"tahoe.{name}", attributes={"tahoe.table": table})
        return partial(_end, span, context.attach(trace.set_span_in_context(span)))

    def happened(self, event: Event) -> None:
        """Add the event to the current span; without one that records, it is dropped."""
        from opentelemetry import trace

        trace.get_current_span().add_event(f"tahoe.{event.name}", _attributes(event))


def _end(span: Span, token: Token[Context], event: Event) -> None:
    from opentelemetry import context
    from opentelemetry.trace import Status, StatusCode

    context.detach(token)
    span.set_attributes(_attributes(event))
    if event.error is not None:
        # Not the message: it may contain values of rows.
        span.set_status(Status(StatusCode.ERROR, event.error))
    span.end()


def _attributes(event: Event) -> dict[str, FieldValue]:
    attributes = {f"tahoe.{name}": value for name, value in event.fields.items()}
    attributes["tahoe.table"] = event.table
    if event.version is not None:
        attributes["tahoe.version"] = event.version
    if event.error is not None:
        attributes["error.type"] = event.error
    return attributes
