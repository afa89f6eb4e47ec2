"""A host and a GPU played through, event by event, so that it is known what a recording of them should say.

Host threads have clocks of their own; a kernel starts when its stream is free and its launch has returned, one latency
later. What the program does on the host advances the clock and leaves the events that the profiler would record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from tests.traces import Json, make_call, make_event, make_kernel, make_op, make_span

LATENCY_US = 2.0
LAUNCH_US = 4.0
#: So that a gap ends with its step.
BETWEEN_STEPS_US = 1.0


class Program:
    def __init__(self) -> None:
        self.events: list[Json] = []
        self.now = 0.0
        self.thread = 1
        self.free: dict[int, float] = defaultdict(float)
        self.correlation = 0

    def launch(
        self,
        gpu_us: float,
        *,
        stream: int = 7,
        call_us: float = LAUNCH_US,
        name: str = "kernel",
        call: str = "cudaLaunchKernel",
    ) -> None:
        self.replay([gpu_us], stream=stream, call_us=call_us, name=name, call=call)

    def replay(
        self,
        gpu_us: list[float],
        *,
        between_us: float = 0.0,
        stream: int = 7,
        call_us: float = LAUNCH_US,
        name: str = "kernel",
        call: str = "cudaGraphLaunch",
    ) -> None:
        """One call that starts several kernels, one after the other, with pauses between them."""
        self.correlation += 1
        begun, self.now = self.now, self.now + call_us
        self.events.append(make_call(begun, self.now, name=call, correlation=self.correlation, thread=self.thread))
        at = max(self.free[stream], self.now + LATENCY_US)
        for us in gpu_us:
            self.events.append(make_kernel(at, at + us, name=name, stream=stream, correlation=self.correlation))
            self.free[stream] = at + us
            at += us + between_us

    def copy(self, gpu_us: float, *, kind: str, held_after_us: float) -> None:
        """A copy with pageable memory: the call returns when it has ended, and a while after."""
        self.correlation += 1
        begun, start = self.now, max(self.free[7], self.now + LATENCY_US)
        self.now = start + gpu_us + held_after_us
        self.free[7] = start + gpu_us
        self.events.append(
            make_call(begun, self.now, name="cudaMemcpyAsync", correlation=self.correlation, thread=self.thread)
        )
        copy = make_kernel(start, start + gpu_us, name=f"Memcpy {kind}", correlation=self.correlation)
        self.events.append({**copy, "cat": "gpu_memcpy"})

    def synchronize(self, *, after_us: float = 0.0, call: str = "cudaStreamSynchronize") -> None:
        """Waits for all streams; `after_us` is how long the host needs to notice."""
        begun, self.now = self.now, max(self.now, *self.free.values()) + after_us
        self.events.append(make_call(begun, self.now, name=call, thread=self.thread))

    def idle(self, us: float) -> None:
        """The host does something that nobody records."""
        self.now += us

    def call(self, us: float, name: str) -> None:
        begun, self.now = self.now, self.now + us
        self.events.append(make_call(begun, self.now, name=name, thread=self.thread))

    @contextmanager
    def op(self, name: str = "aten::add", *, before_us: float = 0.0, after_us: float = 0.0) -> Iterator[None]:
        with self._around(make_op(self.now, self.now, name=name, thread=self.thread)):
            self.now += before_us
            yield
            self.now += after_us

    @contextmanager
    def python(self, name: str) -> Iterator[None]:
        with self._around(make_event("python_function", self.now, self.now, name=name, thread=self.thread)):
            yield

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        with self._around(make_span(self.now, self.now, name=f"tracekit.step#{number}", thread=self.thread)):
            yield
        self.now += BETWEEN_STEPS_US

    @contextmanager
    def _around(self, event: Json) -> Iterator[None]:
        """The event lasts as long as what happens within; outer events come first in the file."""
        self.events.append(event)
        yield
        event["dur"] = round(self.now - event["ts"], 6)

    @contextmanager
    def on_thread(self, thread: int) -> Iterator[None]:
        """Another thread takes over, and hands back when it is done."""
        self.thread, before = thread, self.thread
        yield
        self.thread = before
