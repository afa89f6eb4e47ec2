"""What did torch.compile do to this model on this GPU, and why?"""

__version__ = "0.1.0"
