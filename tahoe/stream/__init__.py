"""A table as a stream: positions, batches, and reading batches without Spark."""
