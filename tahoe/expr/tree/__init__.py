"""Expressions and predicates as frozen values, with their types and what they imply."""
