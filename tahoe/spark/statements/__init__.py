"""Statements: what the session's parser made of a text, as commands on Delta tables."""
