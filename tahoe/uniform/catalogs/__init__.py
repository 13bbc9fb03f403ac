"""Pointers to a table's newest Iceberg metadata: the `Catalog` protocol, and a module for each kind of catalog."""
