"""The single files of the log: their names and contents."""
