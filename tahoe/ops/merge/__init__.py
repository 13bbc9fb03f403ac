"""MERGE without Spark, and what both MERGEs share."""
