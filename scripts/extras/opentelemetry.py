"""Extra `opentelemetry`: spans reach the API. Without the SDK the API discards them, so a provider of this program records their names."""

import pyarrow as pa
from opentelemetry import trace

import tahoe

names: list[str] = []


class Recorder(trace.NoOpTracer):
    """A tracer that records the names of its spans."""

    def start_span(self, name: str, *arguments: object, **options: object) -> trace.Span:
        names.append(name)
        return super().start_span(name)


class Provider(trace.TracerProvider):
    """Returns the recorder."""

    def get_tracer(self, *arguments: object, **options: object) -> trace.Tracer:
        return Recorder()


trace.set_tracer_provider(Provider())
tahoe.Table.create("t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2, 3]}))
assert any("commit" in name for name in names), names
