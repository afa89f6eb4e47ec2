"""What the figures allow to be said: is it faster, fair, certain, allowed?"""
