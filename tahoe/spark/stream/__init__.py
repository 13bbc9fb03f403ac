"""Tables as sources of Structured Streaming in classic sessions: `tahoe.stream` behind Spark's ``Source``, each batch a native scan."""
