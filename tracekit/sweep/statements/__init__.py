"""What is said of a sweep: a class a code."""
