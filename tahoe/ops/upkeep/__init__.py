"""What keeps a table in order: check, purge, upgrade."""
