"""One file a command; the command walks from room to room."""
