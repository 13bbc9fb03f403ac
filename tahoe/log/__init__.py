"""The transaction log: its files, and the state of the table that they give."""
