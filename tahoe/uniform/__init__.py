"""UniForm: a Delta table shown as Iceberg. Conversion, catalogs, detection of other writers, and a REST catalog server."""
