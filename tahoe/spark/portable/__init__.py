"""The portable access, a PySpark Python data source: for Spark Connect."""
