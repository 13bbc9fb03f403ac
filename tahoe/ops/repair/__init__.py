"""What a damaged table can be brought back to without a backup."""
