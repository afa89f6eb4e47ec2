"""The tables of a report, one subject a file; every renderer shows these."""
