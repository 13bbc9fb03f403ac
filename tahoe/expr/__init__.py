"""Filters and expressions: SQL text to frozen trees, and trees over Arrow data."""
