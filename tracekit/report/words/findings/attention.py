"""What findings on attention share."""

from __future__ import annotations

#: What is said beside the advice to compile layers one by one.
PRICE = (
    "Compiled one by one, layers keep the attention that eager code asks for, but each checks its guards: that pays "
    "where the GPU is the slower one, and costs where it waits for the host."
)
