"""What rules look at: the log as it is written, what is in force in a version, and the state that commits give."""
