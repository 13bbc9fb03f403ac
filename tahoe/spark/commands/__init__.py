"""What users ask of a table on Spark, one module for each command."""
