"""Trees over Arrow data, with Spark's answers."""
