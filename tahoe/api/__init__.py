"""The entry points without Spark: one table, several tables together, and the state of the process."""
