"""A sweep as terminal text, page, markdown and JSON."""
