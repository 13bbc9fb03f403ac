"""Maintenance of a table: check, purge, restore, upgrade, vacuum."""
