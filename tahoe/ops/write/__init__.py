"""Writing Arrow data as data files of a table, with statistics, bloom filters and row ids."""
