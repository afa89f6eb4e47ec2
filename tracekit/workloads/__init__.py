"""What can be run: one file a model. Listing the workloads imports no torch."""
