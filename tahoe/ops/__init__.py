"""What changes a table or tells of it, one operation a module, without Spark."""
