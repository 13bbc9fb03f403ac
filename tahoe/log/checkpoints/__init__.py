"""Checkpoints, written and read."""
