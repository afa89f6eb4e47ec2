"""Steps made by hand: kernels launched one by one, or by one CUDA graph."""

from tests.traces import Json, make_call, make_kernel, make_op, make_span


def launched(
    start: float, name: str, correlation: int, *, thread: int = 1, delay: float = 3, us: float = 4
) -> list[Json]:
    """A launch, and its kernel so much later."""
    kernel = make_kernel(start + delay, start + delay + us, name=name, correlation=correlation)
    return [make_call(start, start + 1, correlation=correlation, thread=thread), kernel]


def make_step(
    number: int, names: str, *, start: float | None = None, length: float = 90, size: int = 8, us: float = 4
) -> list[Json]:
    """A step that launches each of its kernels by an operator of its own, whose input has this size."""
    start = 100 * number if start is None else start
    inputs: Json = {"Input Dims": [[size]], "Input type": ["float"]}
    events = [make_span(start, start + length, name=f"tracekit.step#{number}")]
    for at, name in enumerate(names):
        begin = start + 10 * at
        events += [make_op(begin, begin + 5, **inputs), *launched(begin + 1, name, 100 * number + at + 1, us=us)]
    return events


def make_steps(*steps: tuple[str, float, int]) -> list[Json]:
    """Steps one after the other: the names of each, its length and the size of its inputs."""
    made = (make_step(at, names, length=length, size=size) for at, (names, length, size) in enumerate(steps))
    return [event for each in made for event in each]


def make_replay(number: int, names: str, *, length: float = 90) -> list[Json]:
    """A step that launches one CUDA graph, whose kernels start in this order; the longest are called `a`."""
    start = 100 * number
    kernels = [
        make_kernel(start + 10 * at, start + 10 * at + (8 if name == "a" else 4), name=name, correlation=number + 1)
        for at, name in enumerate(names, start=1)
    ]
    call = make_call(start + 1, start + 2, name="cudaGraphLaunch", correlation=number + 1)
    return [make_span(start, start + length, name=f"tracekit.step#{number}"), call, *kernels]
