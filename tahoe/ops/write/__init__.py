"""Arrow data to data files of a table, and what each file keeps of its rows."""
