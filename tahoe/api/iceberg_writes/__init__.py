"""Requests of Iceberg clients carried out on Delta tables: each becomes one Delta commit, and its conversion the answer."""
