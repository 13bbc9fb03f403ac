"""The requests of readers: a table, a version, a range of changes."""
