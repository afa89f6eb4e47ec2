"""The nouns every room shares: frozen dataclasses with the unit in the field name."""
