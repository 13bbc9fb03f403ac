"""The way of a write: rows of a DataFrame, checked, to data files."""
