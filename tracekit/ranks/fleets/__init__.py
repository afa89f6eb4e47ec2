"""Figures of all ranks of a job, in columns, from the summaries of their digests."""
