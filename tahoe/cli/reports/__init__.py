"""Commands that report on a table: differences, statistics, storage, queries, and the HTML page."""
