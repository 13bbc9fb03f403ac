"""The code that runs in the Python workers of Spark's executors, and its transfer."""
