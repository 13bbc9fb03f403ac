"""CONVERT TO DELTA, CLONE and GENERATE on Spark: what names of the session's catalog mean for them."""
