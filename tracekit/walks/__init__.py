"""The ways from room to room that commands and the Python interface take: measuring a run, reading a side."""
