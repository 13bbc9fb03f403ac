"""The settings of delta-spark, each with its state in Tahoe: it works, warns once that it has no effect, or is refused by name."""
