"""Rows that come, go and change: append, overwrite, DELETE, UPDATE."""
