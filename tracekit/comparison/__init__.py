"""Two sides side by side: which is faster, what changed on the GPU, and why."""
