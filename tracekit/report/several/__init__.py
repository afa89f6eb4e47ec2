"""Several ways to compile the same work side by side: page, markdown, terminal and JSON."""
