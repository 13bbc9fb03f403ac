"""The portable way, a PySpark Python data source: for Spark Connect."""
