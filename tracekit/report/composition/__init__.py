"""Which sections a report has, in which order: one place for page, markdown twin and terminal."""
