"""MERGE on Spark: resolved, matched, written."""
