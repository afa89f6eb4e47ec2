"""From a sweep's cells to its figures: what each cell says, which cells do the same work, what is best for what."""
