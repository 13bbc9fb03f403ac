"""For tests of Tahoe and of what builds on it: the contract of stores, and stores that fail on purpose."""
