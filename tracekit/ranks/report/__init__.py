"""What is shown of many ranks: words, tables, the page."""
