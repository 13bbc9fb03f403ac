"""CONVERT TO DELTA, CLONE and GENERATE on Spark: resolve names of the session's catalog."""
