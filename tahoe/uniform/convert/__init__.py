"""Conversion of Delta commits to Iceberg snapshots: plan, build, publish, run in the background, and collect garbage."""
