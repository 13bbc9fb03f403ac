"""Table names: the session's catalog, its cache of relations and its parser, answered in Python."""
