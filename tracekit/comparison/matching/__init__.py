"""Which activities of two sides do the same work, told by provenance, operators, shapes, order and names."""
