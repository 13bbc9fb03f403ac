"""Structured Streaming: a Delta table as what a query writes."""
