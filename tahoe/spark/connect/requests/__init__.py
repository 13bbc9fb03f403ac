"""The requests of PySpark's Connect client in sessions with Tahoe, the server's data source, and its errors."""
