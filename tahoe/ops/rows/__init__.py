"""Changes of rows: append, overwrite, DELETE, UPDATE, TRUNCATE and streaming writes."""
