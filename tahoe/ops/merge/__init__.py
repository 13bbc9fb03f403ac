"""MERGE without Spark, and the parts that MERGE with Spark uses too."""
