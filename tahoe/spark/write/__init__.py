"""The execution of writes: rows of a DataFrame, checked, to data files."""
