"""The operations on tables on Spark, one module for each command."""
