"""How sure can one be of a median of timed calls? Plain numbers in, plain numbers out.

Not a room: the stopping of a timing and the verdict on it must ask the same question of the same numbers, so both stand
on this. It imports nothing of tracekit. Sources and measured error rates are in docs/timing.md.
"""
