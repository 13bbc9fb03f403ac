"""Operations that change or describe a table without Spark, one per module."""
