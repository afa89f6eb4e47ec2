"""Two forms of a job over ranks: what compiling changed on each rank and in its collectives, and how that is told."""
