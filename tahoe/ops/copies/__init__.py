"""Tables made of files that are there: CONVERT TO DELTA, CLONE, and lists of files for readers that know no log."""
