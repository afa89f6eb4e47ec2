"""Notes on the sides of a comparison, and on one side alone."""
