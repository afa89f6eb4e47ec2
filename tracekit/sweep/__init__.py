"""A wing: many settings of a model, each measured in a process of its own, and which one is best."""
