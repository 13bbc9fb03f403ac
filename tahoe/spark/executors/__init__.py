"""What runs in the Python workers of Spark's executors, and how the code for it gets there."""
