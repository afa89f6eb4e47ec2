"""Measuring the cells of a sweep: which, where, in what order, and the folder that keeps them."""
