"""Commands of many ranks."""
