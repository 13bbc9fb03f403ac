"""Statements on Delta tables: the plans of the session's parser, converted to commands."""
