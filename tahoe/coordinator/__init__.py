"""Catalog-managed tables: the commit coordinator, and the log as it is seen through one (docs/design/030)."""
