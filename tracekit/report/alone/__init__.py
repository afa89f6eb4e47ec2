"""One run or trace by itself, as a page and in markdown."""
