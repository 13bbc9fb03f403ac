"""The statements of Delta in SQL text, parsed to values. Runs nothing, and needs no Spark."""
