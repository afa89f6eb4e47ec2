"""What an analysis should say, worked out slowly and obviously: one quarter of a microsecond after the other.

Times of the events must be whole quarters. Nothing of tracekit's code is used.
"""

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tests.traces import Json

TICK = 0.25
#: The host's events that the random traces have, and what each says; spans say nothing.
CAUSES = {
    "aten::add": "op_dispatch",
    "cudaLaunchKernel": "op_dispatch",
    "cudaStreamSynchronize": "sync_wait",
    "TorchDynamo Cache Lookup": "guards",
    "Torch-Compiled Region: 0/0": "python",
    "Pregraph bytecode": "compiled_wrapper",
    "## Call CompiledFxGraph a ##": "compiled_wrapper",
    "triton_poi_fused_add_0": "compiled_wrapper",
    "x (dynamo_timed)": "compile",
    "Python GC": "gc",
    "Buffer Flush": "profiler",
}
ACTIVITIES = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")


@dataclass
class Expected:
    busy: Counter[int] = field(default_factory=Counter)
    idle: Counter[int] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    gaps: int = 0
    kernels: Counter[int] = field(default_factory=Counter)
    launches: dict[int, set[int]] = field(default_factory=dict)
    families: Counter[str] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)
    gaps_of: Counter[str] = field(default_factory=Counter)
    step_walls: dict[int, int] = field(default_factory=dict)
    step_busy: Counter[int] = field(default_factory=Counter)
    step_idle: Counter[int] = field(default_factory=Counter)
    step_causes: dict[int, Counter[str]] = field(default_factory=dict)


def end_of(event: Json) -> float:
    return float(event["ts"] + event["dur"])


def argument(event: Json, key: str) -> Any:
    return event.get("args", {}).get(key)


def ticks(begin: float, end: float) -> list[float]:
    return [begin + i * TICK for i in range(round((end - begin) / TICK))]


class Reference:
    """One trace's events, asked one question at a time. `steps` are the spans that mark steps, of any thread; those
    that lie in another of their thread are none."""

    def __init__(self, events: list[Json], steps: list[Json]) -> None:
        # Of events that begin and end together the category that the file names first comes first.
        categories = list(dict.fromkeys(e["cat"] for e in events))
        self.activities = sorted(
            (e for e in events if e["cat"] in ACTIVITIES),
            key=lambda e: (e["ts"], -e["dur"], categories.index(e["cat"])),
        )
        self.calls = sorted((e for e in events if e["cat"] in CALLS), key=lambda e: (e["ts"], -e["dur"]))
        self.hosts = sorted(
            (e for e in events if e["cat"] not in (*ACTIVITIES, *CALLS)), key=lambda e: categories.index(e["cat"])
        )
        steps = sorted(steps, key=lambda e: (e["ts"], -e["dur"]))
        self.steps = [each for i, each in enumerate(steps) if not any(_holds(other, each) for other in steps[:i])]
        self.has_ops = any(e["cat"] == "cpu_op" for e in events)
        self.launching = [call for activity in self.activities if (call := self.launch(activity)) is not None]

    def launch(self, activity: Json) -> Json | None:
        """The last call of its id that began before it, else the first of that id."""
        wanted = argument(activity, "correlation")
        calls = [call for call in self.calls if wanted and argument(call, "correlation") == wanted]
        # One inside another of its id and thread is part of it.
        calls = [call for i, call in enumerate(calls) if not any(_holds(other, call) for other in calls[:i])]
        # The clocks of host and GPU may differ by a microsecond.
        before = [call for call in calls if call["ts"] - 1 <= activity["ts"]]
        return before[-1] if before else calls[0] if calls else None

    def step_of(self, activity: Json) -> int | None:
        call = self.launch(activity)
        moment = call["ts"] if call else activity["ts"]
        around = [i for i, step in enumerate(self.steps) if step["ts"] <= moment < end_of(step)]
        own = [i for i in around if call and self.steps[i]["tid"] == call["tid"]]
        return (own or around)[-1] if around else None

    def expect(self) -> Expected:
        found = Expected()
        counted = [(a, self.step_of(a) if self.steps else 0) for a in self.activities]
        counted = [(a, step) for a, step in counted if step is not None]
        for activity, step in counted:
            found.copies[activity["cat"]] += 1
            if activity["cat"] == "kernel":
                found.families[activity["name"]] += 1
                found.kernels[step] += 1
                call = self.launch(activity)
                found.launches.setdefault(step, set()).update({id(call)} if call else set())
        for device in sorted({argument(a, "device") for a, _ in counted}):
            self._expect_of(device, [(a, s) for a, s in counted if argument(a, "device") == device], found)
        return found

    def _expect_of(self, device: int, counted: list[tuple[Json, int]], found: Expected) -> None:
        windows = self._windows(counted)
        running = [a for a in self.activities if argument(a, "device") == device]
        inside = sorted({tick for begin, end in windows for tick in ticks(begin, end)})
        idle = [tick for tick in inside if not any(a["ts"] <= tick < end_of(a) for a in running)]
        found.busy[device] = len(inside) - len(idle)
        found.idle[device] = len(idle)
        cause_at: dict[float, str] = {}
        for gap in _runs(idle):
            found.gaps += 1
            causes = {tick: self._cause(tick, gap, running) for tick in gap}
            cause_at |= causes
            found.causes.update(causes.values())
            found.gaps_of.update(set(causes.values()))
        for i, window in enumerate(windows):
            free = [tick for tick in ticks(*window) if tick in cause_at]
            found.step_causes.setdefault(i, Counter()).update(cause_at[tick] for tick in free)
            found.step_idle[i] += len(free)
            found.step_busy[i] += len(ticks(*window)) - len(free)
            found.step_walls[i] = max(found.step_walls.get(i, 0), len(ticks(*window)))

    def _windows(self, counted: list[tuple[Json, int]]) -> list[tuple[float, float]]:
        if not self.steps:
            # All GPUs together.
            return [(min(a["ts"] for a in self.activities), max(end_of(a) for a in self.activities))]
        windows = []
        for i, step in enumerate(self.steps):
            ends = [end_of(a) for a, s in counted if s == i]
            windows.append((step["ts"], max([end_of(step), *ends])))
        return windows

    def _cause(self, tick: float, gap: list[float], running: list[Json]) -> str:
        over = gap[-1] + TICK
        ending = [a for a in running if a["ts"] == over]
        begun = [step for step in self.steps if step["ts"] <= gap[0]]
        preceding = next((self.launch(a) for a in running if end_of(a) == gap[0]), None)
        handing_over = preceding or (begun[-1] if begun else None)
        other = handing_over["tid"] if handing_over else None
        if ending:
            call = self.launch(ending[0])
            if call is None:
                return "unattributed"
            if call is preceding:
                return "device"
            if tick < min(max(end_of(call), gap[0]), over):
                return self._host(tick, call["tid"], other)
            return "device" if self._queued(ending[0], running) else "launch_latency"
        return self._host(tick, begun[-1]["tid"], other) if begun else "unattributed"

    def _queued(self, activity: Json, running: list[Json]) -> bool:
        """It waited for work that was launched sooner: of the same call, or ended later than its launch alone lasts."""
        latencies = []
        for each in running:
            if (call := self.launch(each)) and not self._in_call(each, running):
                before = self._end_before(each, running)
                latencies += [each["ts"] - end_of(call)] if before is None or end_of(call) > before else []
        usual = min(max(median(latencies), 0), 20) if latencies else 2
        call, before = self.launch(activity), self._end_before(activity, running)
        if call is None or before is None:
            return False
        return self._in_call(activity, running) or before - end_of(call) >= usual

    def _launched_sooner(self, activity: Json, running: list[Json]) -> list[Json]:
        def place(each: Json) -> tuple[int, int]:
            call = self.launch(each)
            at = next((i for i, other in enumerate(self.calls) if other is call), -1)
            return at, next(i for i, other in enumerate(running) if other is each)

        return [each for each in running if place(each) < place(activity)]

    def _in_call(self, activity: Json, running: list[Json]) -> bool:
        call = self.launch(activity)
        return any(self.launch(each) is call for each in self._launched_sooner(activity, running))

    def _end_before(self, activity: Json, running: list[Json]) -> float | None:
        sooner = self._launched_sooner(activity, running)
        # On its own stream a programmatic dependent launch begins before what it depends on has ended.
        same = [each for each in running if each["args"]["stream"] == activity["args"]["stream"]]
        begun = [
            each for each in same if each["ts"] < activity["ts"] or (each["ts"] == activity["ts"] and each in sooner)
        ]
        last = max((each["ts"] for each in begun if each is not activity), default=None)
        overlapped = [each for each in begun if each["ts"] == last and each is not activity]
        if overlapped and overlapped[-1] in sooner and end_of(overlapped[-1]) > activity["ts"]:
            return end_of(overlapped[-1])
        ends = [end_of(each) for each in sooner]
        return max((end for end in ends if end <= activity["ts"]), default=None)

    def _host(self, tick: float, thread: int, other: int | None) -> str:
        """What the innermost event of the thread says, else of the one that launched what ran before."""
        for each in (thread, other):
            found = self._innermost(tick, each) if each is not None else None
            if found is not None:
                said = self._said(found, each)
                return "compiled_wrapper" if said == "python" and self._enters(found, each, tick) else said
        return "python" if self.has_ops else "unattributed"

    def _innermost(self, tick: float, thread: int, begun_before: tuple[float, float, int] | None = None) -> Json | None:
        """The event that began last of those that are open; of those that began together, the shortest."""
        open_ = []
        for order, event in enumerate([*self.hosts, *self.calls]):
            on_thread = event["tid"] == thread or event["cat"] == "overhead"
            place = (event["ts"], -event["dur"], order)
            earlier = begun_before is None or place < begun_before
            if on_thread and earlier and self._named(event) and event["ts"] <= tick < end_of(event):
                open_.append((place, event))
        return max(open_, key=lambda each: each[0])[1] if open_ else None

    def _enters(self, region: Json, thread: int, tick: float) -> bool:
        """Whether the region's graph is still to come, with its bytecode before it or behind."""
        if not region["name"].startswith("Torch-Compiled Region"):
            return False
        inside = []
        for order, event in enumerate([*self.hosts, *self.calls]):
            if event["tid"] == thread and self._named(event):
                around = self._around(event, thread, order)
                while around is not None and not around["name"].startswith("Torch-Compiled Region"):
                    around = self._around(around, thread)
                inside += [event] if around is region else []
        graphs = [event["ts"] for event in inside if event["name"].startswith("## Call CompiledFxGraph")]
        begins = any(event["name"] == "Pregraph bytecode" for event in inside)
        return begins and bool(graphs) and tick < min(graphs)

    def _around(self, event: Json, thread: int, order: int | None = None) -> Json | None:
        if order is None:
            order = next(i for i, each in enumerate([*self.hosts, *self.calls]) if each is event)
        return self._innermost(event["ts"], thread, (event["ts"], -event["dur"], order))

    def _said(self, event: Json, thread: int) -> str:
        """Its own cause, unless it was inside something that compiled or collected garbage."""
        around = self._around(event, thread)
        inside = around is not None and end_of(event) <= end_of(around)
        inherited = self._said(around, thread) if inside else None
        own = self._named(event) or "unattributed"
        if "compile" in (inherited, own):
            return "compile"
        return "gc" if inherited == "gc" else own

    def _named(self, event: Json) -> str | None:
        launches = any(event is call for call in self.launching)
        return "launch_call" if launches else CAUSES.get(event["name"])


def _holds(outer: Json, inner: Json) -> bool:
    return outer["tid"] == inner["tid"] and end_of(outer) >= end_of(inner)


def _runs(moments: list[float]) -> list[list[float]]:
    """Stretches of neighbouring ticks; where one window follows on another, a gap goes on."""
    runs: list[list[float]] = []
    for tick in moments:
        if runs and tick - runs[-1][-1] == TICK:
            runs[-1].append(tick)
        else:
            runs.append([tick])
    return runs
