"""Delta tables in sessions of Spark Connect, whose server needs no Tahoe (docs/design/041)."""
