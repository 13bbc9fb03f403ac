"""Tables as sources of Structured Streaming on classic sessions: `tahoe.stream` behind Spark's ``Source``, each batch a native scan."""
