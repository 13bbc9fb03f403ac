"""Structured Streaming: a Delta table as the sink of a query."""
