"""What a user names, a run, a trace or several, as sides to compare, and where their report goes."""
