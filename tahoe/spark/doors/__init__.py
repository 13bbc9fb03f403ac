"""PySpark's own methods, as they are in a session with Delta on: readers, writers, the catalog, new sessions."""
