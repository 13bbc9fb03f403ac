"""MERGE on Spark: understood, matched, written."""
