"""Commits of Iceberg clients as values: requests, requirements, and the files that a snapshot adds and removes."""
