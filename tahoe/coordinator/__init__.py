"""Catalog-managed tables: who says which commits count, and the log as it is seen then (docs/design/030)."""
