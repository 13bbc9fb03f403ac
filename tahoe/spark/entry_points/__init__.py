"""PySpark's own methods in a session with Delta enabled: readers, writers, the catalog, new sessions."""
