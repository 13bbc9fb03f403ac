"""Operations are spans in the caller's trace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.api.table import Table
from tahoe.base.events import happened, observed
from tahoe.base.exceptions import InvalidRequest
from tahoe.observe.spans import Spans

UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The spans that ended. The provider of the process can be set once, and so it is replaced here for the test alone."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


def names_of(spans: tuple[ReadableSpan, ...]) -> list[str]:
    return [span.name for span in spans]


def test_a_commit_is_a_span_with_the_fields_of_its_event(exporter: InMemorySpanExporter, memory_url: str) -> None:
    Table(memory_url).append(pa.table({"id": [1, 2, 3]}))
    (span,) = exporter.get_finished_spans()
    assert span.name == "tahoe.commit" and span.instrumentation_scope.name == "tahoe"
    expected = {"tahoe.table": memory_url, "tahoe.version": 0, "tahoe.operation": "WRITE", "tahoe.rows_written": 3}
    assert expected.items() <= dict(span.attributes or {}).items()
    assert span.status.is_unset


def test_spans_are_nested_as_operations_are_below_the_callers_span(exporter: InMemorySpanExporter, memory_url: str) -> None:
    table = Table(memory_url)
    table.append(pa.table({"id": [1, 2, 3]}))
    exporter.clear()
    with trace.get_tracer("mine").start_as_current_span("mine"):
        table.delete("id = 1")
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert list(spans) == ["tahoe.plan", "tahoe.commit", "tahoe.delete", "mine"]
    for child, parent in [("tahoe.plan", "tahoe.delete"), ("tahoe.commit", "tahoe.delete"), ("tahoe.delete", "mine")]:
        above, context = spans[child].parent, spans[parent].context
        assert above is not None and context is not None and above.span_id == context.span_id


def test_a_conversion_in_the_background_is_below_the_span_in_which_the_commit_was_made(
    exporter: InMemorySpanExporter, memory_url: str
) -> None:
    table = Table.create(memory_url, pa.schema([("id", pa.int64())]), properties=UNIFORM)
    UNIFORM_RUNTIME.queue.drain(table=memory_url)
    exporter.clear()
    with trace.get_tracer("mine").start_as_current_span("mine"):
        table.append(pa.table({"id": [1, 2, 3]}))
    assert UNIFORM_RUNTIME.queue.drain(600, memory_url)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    above, context = spans["tahoe.convert"].parent, spans["mine"].context
    assert above is not None and context is not None and above.span_id == context.span_id
    assert {"tahoe.kind": "incremental", "tahoe.version": 1}.items() <= dict(spans["tahoe.convert"].attributes or {}).items()


def test_a_failed_operation_has_the_code_of_its_error_and_not_its_message(
    exporter: InMemorySpanExporter, memory_url: str
) -> None:
    table = Table(memory_url)
    table.append(pa.table({"id": [1]}))
    exporter.clear()
    with pytest.raises(InvalidRequest) as raised:
        table.update({"id": "nothing + 1"})
    (span,) = exporter.get_finished_spans()
    assert not span.status.is_ok and span.status.description == raised.value.code
    assert dict(span.attributes or {})["error.type"] == raised.value.code
    assert "nothing" not in span.to_json()


def test_a_retry_is_an_event_of_the_current_span(exporter: InMemorySpanExporter) -> None:
    with observed("commit", "file:///t"):
        happened("retry", "file:///t", 4, attempts=2)
    (span,) = exporter.get_finished_spans()
    assert [(event.name, dict(event.attributes or {})) for event in span.events] == [
        ("tahoe.retry", {"tahoe.table": "file:///t", "tahoe.version": 4, "tahoe.attempts": 2})
    ]


def test_the_callers_span_is_current_again_after_an_operation(exporter: InMemorySpanExporter, memory_url: str) -> None:
    before = trace.get_current_span()
    Table(memory_url).append(pa.table({"id": [1]}))
    assert trace.get_current_span() is before


def test_nothing_is_observed_without_a_tracer_provider() -> None:
    assert trace.get_tracer("tahoe") is not None
    assert not Spans().is_on("commit")


def test_nothing_is_observed_or_imported_without_the_api() -> None:
    program = "import sys; from tahoe.observe.spans import Spans; print(Spans().is_on('commit'), 'opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
