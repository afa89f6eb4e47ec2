"""What a reader of a comparison should know or do."""
