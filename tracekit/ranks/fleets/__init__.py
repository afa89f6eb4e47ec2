"""A thousand ranks, reduced from the summaries of their digests."""
