"""A Delta table as Iceberg shows it: the conversion, the catalogs that name it, other writers on that side, and a server of it."""
