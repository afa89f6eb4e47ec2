"""What is said of many ranks: a class a code."""
