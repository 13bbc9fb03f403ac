"""Table features of a table that is there: what dropping one takes, and who can read what is left."""
