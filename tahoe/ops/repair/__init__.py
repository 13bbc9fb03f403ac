"""Repair of corrupt tables without a backup."""
