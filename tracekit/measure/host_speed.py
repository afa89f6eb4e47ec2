"""How fast is the host just now? What others do on the machine slows it, in turns of a few calls to seconds.

On shared machines with an H100 or H200 the host was found to take 1.6 times as long in such a turn, for Python and for
launches alike (docs/timing.md): calls that were timed and calls that were recorded are not of one speed.
"""

from time import perf_counter_ns, thread_time_ns

#: 15 to 30 us: too short to hold up a call, and longer than the clock is coarse.
ADDITIONS = 1000


def host_us() -> float:
    """How long this thread takes for a piece of Python that is always the same, in microseconds."""
    began, total = perf_counter_ns(), 0
    for number in range(ADDITIONS):
        total += number
    return (perf_counter_ns() - began) / 1e3


def has_thread_clock() -> bool:
    """Whether the time that a thread is on a CPU is told so finely that a step has it. A sandbox's may advance by 10 ms
    at a time."""
    began = thread_time_ns()
    host_us()
    return thread_time_ns() > began
