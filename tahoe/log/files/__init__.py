"""The files of the log, one by one: their names, and what stands in them."""
