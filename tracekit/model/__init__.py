"""The nouns every room shares: frozen structs with the unit in the field name."""
