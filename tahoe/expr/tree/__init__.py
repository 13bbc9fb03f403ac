"""Expressions and predicates as frozen values, with their types and implications."""
