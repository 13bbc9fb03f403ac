"""One version of a table, and how its rows are read."""
