"""Nouns in, text out: terminal, page, markdown and JSON. Nothing here writes files."""
