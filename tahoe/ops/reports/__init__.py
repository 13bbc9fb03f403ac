"""Reports on a table: the difference between two versions, storage by kind of file, statistics of columns, and the HTML page."""
