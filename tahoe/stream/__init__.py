"""A table as a stream: positions in it, what each batch holds, and the rows of batches without Spark."""
