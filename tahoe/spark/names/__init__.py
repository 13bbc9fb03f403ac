"""What a reader means: a table, a version, a range of changes."""
