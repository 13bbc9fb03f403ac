"""The layout of a table: the files that are rewritten together, and the order of the rows in the new files."""
