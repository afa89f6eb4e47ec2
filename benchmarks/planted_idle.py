"""Does `tracekit.profile` show GPU idle time under its cause? Truth by construction, eager and compiled.

    python -m benchmarks.planted_idle --out results/planted-idle.json --before results/planted-idle.json [--keep FOLDER]
    python -m benchmarks.planted_idle --device cpu --out /tmp/planted-idle.json

Each call begins on an empty GPU. The program then keeps the GPU waiting for a time that it measures itself, in the very
calls whose wall time tracekit reports; all else that the host does is hidden behind products that queue up afterwards.
Planted work is always the same and takes longer where the host is slower, as a user's does; waits go by the clock. A
twin is the same program, with the same graph breaks, whose plant takes no time. `planted_idle_score.py` scores the
difference of both by `PLANTS`, which was written before anything was run. On a CPU all of it runs, but no GPU is idle:
no figures.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gc
import importlib
import inspect
import json
import math
import multiprocessing
import os
import re
import sys
import tempfile
import threading
import time
import timeit
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

import tracekit
from benchmarks.planted_idle_score import Expected, Shown, compact, row, score, summary
from tracekit.measure import recording
from tracekit.measure.timing import CallTime, Timings
from tracekit.model.run import FormName, FormResult
from tracekit.report.contract import comparison_json

MODES = ("default", "reduce-overhead")
VARIANTS = ("eager", *MODES)


@dataclass(frozen=True)
class Sizes:
    """`products` of `rows` with a matrix of this `width` hide the host; `iterations` are timed; what is planted.
    `host_us` is the length of a wait, and of work at the host's speed when the plant is made.

    The products read memory and calculate little: those that calculate much run into the GPU's power limit in timed
    calls and not in recorded ones, and then idle time, which is the wall time less what was recorded as busy, is 0.2 to
    0.4 ms too long where the GPU works most, in the twins.
    """

    device: str = "cuda"
    rows: int = 32
    width: int = 10_240
    products: int = 40
    iterations: int = 30
    host_us: int = 2000
    objects: int = 20_000
    operators: int = 400
    guarded: int = 2000
    copies: int = 24
    copied: int = 2**19


SMALL = Sizes("cpu", 2, 64, 2, 2, 200, 2000, 8, 20, 2, 2**16)


@dataclass
class Ledger:
    """What the program measured, call by call: nanoseconds of the `host`'s planted work, and of `gc`, in it or not.
    `timed` are the calls whose wall time tracekit reports, each with that time in microseconds."""

    timed: dict[FormName, list[tuple[float, dict[str, int]]]] = field(default_factory=lambda: defaultdict(list))
    now: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    began: tuple[int, int] = (0, 0)
    collecting: int = 0

    def new_call(self) -> None:
        self.now = defaultdict(int)

    @contextlib.contextmanager
    def keeping_timed_calls(self) -> Iterator[None]:
        """Keeps the call that was made last whenever tracekit adds a time to those that it reports. Calls that warm up,
        that go before a timed one, controls and recorded calls are none of them."""
        add = Timings.add

        def kept(timings: Timings, name: FormName, call: CallTime, control_of: int | None = None) -> None:
            add(timings, name, call, control_of)
            if control_of is None:
                self.timed[name].append((call.wall_us, self.now))
                # What is collected from here on belongs to no call.
                self.new_call()

        with patch.object(Timings, "add", kept):
            yield

    def begin(self) -> None:
        self.began = (time.perf_counter_ns(), self.now["gc"])

    def end(self) -> None:
        began, collected = self.began
        self.now["host"] += time.perf_counter_ns() - began - (self.now["gc"] - collected)

    def on_collection(self, phase: str, _facts: object) -> None:
        if phase == "start":
            self.collecting = time.perf_counter_ns()
        else:
            self.now["gc"] += time.perf_counter_ns() - self.collecting

    def us(self, form: FormResult) -> dict[str, float]:
        """Of an unprofiled call, as tracekit's wall time is: medians of exactly the calls that were timed."""
        calls = self.timed[form.name]
        if tuple(wall_us for wall_us, _ in calls) != form.wall_us:
            raise RuntimeError(f"{form.name}: {len(calls)} calls are not the {len(form.wall_us)} that tracekit timed")
        return {label: median(now[label] for _, now in calls) / 1e3 for label in ("host", "gc")}


# Modules: where the plant is. `x` is large and hides the host, `small` lets a graph run before the plant.


def matrix(rows: int, sizes: Sizes) -> torch.Tensor:
    dtype = torch.float32 if sizes.device == "cpu" else torch.bfloat16
    return torch.randn(rows, sizes.width, device=sizes.device, dtype=dtype)


class Planted(nn.Module):
    #: The plant of a twin.
    twin: Callable[[Sizes, Ledger], Any] = staticmethod(lambda _sizes, _ledger: nothing)

    def __init__(self, ledger: Ledger, sizes: Sizes, work: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(matrix(sizes.width, sizes) / math.sqrt(sizes.width))
        self.products, self.work = sizes.products, work
        self.begin, self.end = torch.compiler.disable(ledger.begin), torch.compiler.disable(ledger.end)

        @torch.compiler.disable
        def host() -> None:
            """A user's own code between graphs. What the work returns goes before the end."""
            ledger.begin()
            work()
            ledger.end()

        self.host = host

    def queue(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.products):
            x = x @ self.weight
        return x


class AtStart(Planted):
    def forward(self, x: torch.Tensor, small: torch.Tensor) -> Any:
        self.host()
        return self.queue(x)


class InMiddle(Planted):
    def forward(self, x: torch.Tensor, small: torch.Tensor) -> Any:
        small = small + 1
        self.host()
        return self.queue(x), small


class AtEnd(Planted):
    def forward(self, x: torch.Tensor, small: torch.Tensor) -> Any:
        small = small + 1
        self.host()
        return small


class Twice(Planted):
    def forward(self, x: torch.Tensor, small: torch.Tensor) -> Any:
        self.host()
        small = small + 1
        self.host()
        return self.queue(x), small


class Printing(Planted):
    """`print` breaks the graph by itself; its stream takes the time."""

    loss = 0.25
    twin = staticmethod(lambda _sizes, ledger: Stream(ledger, 0))

    def forward(self, x: torch.Tensor, small: torch.Tensor) -> Any:
        small = small + 1
        print(f"loss {self.loss}", file=self.work)
        return self.queue(x), small


class AfterItem(Planted):
    def forward(self, x: torch.Tensor, small: torch.Tensor) -> Any:
        x = self.queue(x)
        x[0, 0].item()
        self.host()
        return self.queue(x)


class Operators(Planted):
    """`work` pairs of tiny operators. A reduction along the other dimension each time keeps them in kernels apart."""

    twin = staticmethod(lambda _sizes, _ledger: 1)

    def forward(self, x: torch.Tensor, small: torch.Tensor) -> Any:
        self.begin()
        for number in range(self.work):
            small = small - small.amax(dim=number % 2, keepdim=True)
        self.end()
        return self.queue(x), small


class Guarded(Planted):
    """A block that reads the sizes of `work` parameters, called eight times; its graph is one addition."""

    twin = staticmethod(lambda _sizes, _ledger: 1)

    def __init__(self, ledger: Ledger, sizes: Sizes, work: int) -> None:
        super().__init__(ledger, sizes, work)
        # A list in an argument: of a module's own parameters Dynamo may check the dictionary alone.
        self.guarded = [[nn.Parameter(torch.zeros(1, device=sizes.device)) for _ in range(work)]]

    def block(self, small: torch.Tensor, parameters: list[nn.Parameter]) -> torch.Tensor:
        count = 0
        for parameter in parameters:
            count += parameter.numel()
        return small + count

    @torch.compiler.disable(recursive=False)
    def blocks(self, small: torch.Tensor) -> torch.Tensor:
        self.begin()
        for _ in range(8):
            small = self.block(small, self.guarded[0])
        self.end()
        return small

    def forward(self, x: torch.Tensor, small: torch.Tensor) -> Any:
        small = self.blocks(small)
        return self.queue(x), small


# What the host does.


def nothing() -> None:
    """A twin's plant, too."""


def fixed_work(us: float, turn: Callable[[], object] = nothing) -> Callable[[], None]:
    """As many turns as take `us` at the host's speed now, by the fastest of five tries: so many in each call."""

    def work(turns: int) -> None:
        for _ in range(turns):
            turn()

    turns = 1000
    fastest_us = min(timeit.repeat(partial(work, turns), number=1, repeat=5)) * 1e6
    return partial(work, round(turns * us / fastest_us))


def fixed_numpy_work(sizes: Sizes) -> Callable[[], None]:
    return fixed_work(sizes.host_us, partial(np.sort, np.random.default_rng(0).standard_normal(1000)))


def lock_held_elsewhere(sizes: Sizes) -> Callable[[], None]:
    """A wait by the clock."""
    lock = threading.Lock()

    def hold(taken: threading.Event) -> None:
        with lock:
            taken.set()
            time.sleep(sizes.host_us / 1e6)

    def work() -> None:
        taken = threading.Event()
        threading.Thread(target=hold, args=(taken,)).start()
        taken.wait()
        with lock:
            pass

    return work


class Slow(torch.utils.data.IterableDataset[int]):
    """Half of its time is a wait by the clock, half is fixed work."""

    def __init__(self, us: float) -> None:
        self.us, self.work = us, fixed_work(us / 2)

    def __iter__(self) -> Iterator[int]:
        while True:
            time.sleep(self.us / 2e6)
            self.work()
            yield 1


def slow_loader(sizes: Sizes) -> Callable[[], object]:
    return partial(next, iter(torch.utils.data.DataLoader(Slow(sizes.host_us), batch_size=None)))


class Stream:
    """Waits by the clock in each of the two writes of a `print`, and measures it."""

    def __init__(self, ledger: Ledger, us: float) -> None:
        self.ledger, self.us = ledger, us

    def write(self, _text: str) -> None:
        self.ledger.begin()
        if self.us:
            time.sleep(self.us / 2e6)
        self.ledger.end()


def full_collection(sizes: Sizes) -> Callable[[], object]:
    return partial(lambda _objects: gc.collect(), [[number] for number in range(10 * sizes.objects)])


def automatic_collection(sizes: Sizes) -> Callable[[], object]:
    """As many young objects as let one collection happen: `main` sets the threshold to two thirds of them."""
    return lambda: [[number] for number in range(3 * sizes.objects)]


def pageable_copies(sizes: Sizes) -> Callable[[], object]:
    """The driver copies pageable memory piece by piece to pinned memory, and the GPU from there: a copy counts as busy
    from its first piece to its last, so that a large one leaves the GPU idle for the first piece alone (0.2 of 2.5 ms).
    Copies of one piece each leave it idle for all that the host copies."""
    parts = [torch.ones(sizes.copied, dtype=torch.uint8) for _ in range(sizes.copies)]
    return lambda: [part.to(sizes.device, copy=True) for part in parts]


@dataclass(frozen=True)
class Plant:
    """`module` says where the plant is, `work` makes what the host does there. `expected` is by variant; words say why
    a variant has nothing to show."""

    name: str
    module: type[Planted]
    work: Callable[[Sizes, Ledger], Any]
    expected: Mapping[str, tuple[Expected, ...] | str]


def in_all(*expected: Expected) -> Mapping[str, tuple[Expected, ...] | str]:
    return dict.fromkeys(VARIANTS, expected)


PYTHON, GC = Expected("host", ("python",)), Expected("gc", ("gc",))
#: Work after a wait keeps its cause; `after_sync` is the name under which it may stand.
AFTER_SYNC = Expected("host", ("python", "after_sync"))
#: Until a copy begins the host is in the call that launches it, or in one that waits; between two copies in operators.
COPIES = Expected("host", ("launch_call", "sync_wait"), ("op_dispatch", "python", "launch_latency"), less_busy=True)
#: How much of an operator is dispatch, how much its launch: nobody but a profiler can say. So their sum is scored.
LAUNCHING = ("op_dispatch", "launch_call", "launch_latency")
OPERATORS = {
    "eager": (Expected("host", LAUNCHING, ("python",), less_busy=True),),
    "default": (Expected("host", ("compiled_wrapper",), LAUNCHING, less_busy=True),),
    "reduce-overhead": "one CUDA graph launches all of them: the host does nothing between them",
}
#: Guards read so much that what runs after them finds the caches cold: on an H100 the wrapper takes 40 to 80 us longer.
GUARDS = {
    **in_all(Expected("host", ("guards",), ("compiled_wrapper",))),
    "eager": "nothing is guarded without torch.compile",
}

PLANTS = (
    Plant("python_start", AtStart, lambda sizes, _: fixed_work(sizes.host_us), in_all(PYTHON)),
    Plant("python_middle", InMiddle, lambda sizes, _: fixed_work(sizes.host_us), in_all(PYTHON)),
    Plant("python_end", AtEnd, lambda sizes, _: fixed_work(sizes.host_us), in_all(PYTHON)),
    Plant("python_twice", Twice, lambda sizes, _: fixed_work(sizes.host_us), in_all(PYTHON)),
    Plant("numpy", AtStart, lambda sizes, _: fixed_numpy_work(sizes), in_all(PYTHON)),
    Plant("sleep", AtStart, lambda sizes, _: partial(time.sleep, sizes.host_us / 1e6), in_all(PYTHON)),
    Plant("lock", InMiddle, lambda sizes, _: lock_held_elsewhere(sizes), in_all(PYTHON)),
    Plant("loader", AtStart, lambda sizes, _: slow_loader(sizes), in_all(PYTHON)),
    Plant("print", Printing, lambda sizes, ledger: Stream(ledger, sizes.host_us), in_all(PYTHON)),
    Plant("gc_collect", InMiddle, lambda sizes, _: full_collection(sizes), in_all(GC)),
    Plant("gc_automatic", AtStart, lambda sizes, _: automatic_collection(sizes), in_all(GC, PYTHON)),
    Plant("after_item", AfterItem, lambda sizes, _: fixed_work(sizes.host_us / 2), in_all(AFTER_SYNC)),
    Plant("pageable_copy", AtStart, lambda sizes, _: pageable_copies(sizes), in_all(COPIES)),
    Plant("operators", Operators, lambda sizes, _: sizes.operators // 2, OPERATORS),
    Plant("guarded", Guarded, lambda sizes, _: sizes.guarded, GUARDS),
)


def profiled(plant: Plant, mode: str, sizes: Sizes, out: Path, *, twin: bool = False) -> dict[str, Shown]:
    """What one run of a program, or of its twin, measured, and tracekit said of it: eager, and compiled in this mode.

    In a process of its own, as people's runs are: launches take longer for the rest of a process that has recorded. It
    is forked from this one, which has imported what takes seconds and not touched the GPU."""
    shown = in_a_process(partial(_profiled_here, plant.name, mode, sizes, out, twin=twin))
    # Each run asks another process whether the profiler sees kernels, which takes seconds: once is enough.
    recording.COMMAND = (sys.executable, "-c", "")
    return shown


def in_a_process(call: Callable[[], Any]) -> Any:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as process:
        return process.submit(call).result()


def _profiled_here(name: str, mode: str, sizes: Sizes, out: Path, *, twin: bool) -> dict[str, Shown]:
    (plant,) = (each for each in PLANTS if each.name == name)
    # Collections look at this run's objects, not at all that was imported.
    gc.collect()
    gc.freeze()
    ledger = Ledger()
    torch.manual_seed(0)
    work = (plant.module.twin if twin else plant.work)(sizes, ledger)
    module = plant.module(ledger, sizes, work)
    x, small = matrix(sizes.rows, sizes), torch.zeros(32, 32, device=sizes.device)

    def call() -> object:
        ledger.new_call()
        with torch.no_grad():
            return module(x, small)

    gc.callbacks.append(ledger.on_collection)
    try:
        with ledger.keeping_timed_calls():
            run = tracekit.profile(
                tracekit.Workload(call=call, modules={"model": module}, title=plant.name),
                compile={"mode": mode},
                out=out,
                iterations=sizes.iterations,
                provenance=False,
                numerics=False,
                quiet=True,
            )
    finally:
        gc.callbacks.remove(ledger.on_collection)
    comparison = run.compare()
    eager_us, compiled_us = (ledger.us(form) for form in run.forms)
    said = json.loads(comparison_json(comparison))
    screen = re.sub(r"<[^>]*>", "", comparison._repr_html_())
    source, first = inspect.getsourcelines(plant.module.forward)
    on_screen = {int(number) for number in re.findall(rf"{re.escape(Path(__file__).name)}:(\d+)", screen)}
    line_on_screen = not on_screen.isdisjoint(range(first, first + len(source)))
    # Advice is for the compiled program, and only of its plant a graph break tells the line.
    return {
        "eager": Shown(eager_us, said["a"]["per_step"]),
        mode: Shown(compiled_us, said["b"]["per_step"], tuple(said["findings"]), line_on_screen),
    }


def cells_of(plant: Plant, sizes: Sizes, folder: Path, twins: dict[str, dict[str, Shown]]) -> Iterator[dict[str, Any]]:
    """The cells of a plant, eager from the run of the first mode. `twins` are shared by all plants of a module."""
    for mode in MODES:
        scored: dict[str, tuple[Expected, ...]] = {}
        for variant in VARIANTS[:2] if mode == MODES[0] else (mode,):
            expected = plant.expected[variant]
            if isinstance(expected, str):
                yield {"plant": plant.name, "variant": variant, "verdict": "n/a", "why": expected}
            else:
                scored[variant] = expected
        if not scored:
            continue
        try:
            twin = f"twin-{plant.module.__name__}-{mode}"
            if twin not in twins:
                twins[twin] = profiled(plant, mode, sizes, folder / twin, twin=True)
            shown = profiled(plant, mode, sizes, folder / f"{plant.name}-{mode}")
        except Exception as error:  # noqa: BLE001 - device time is dear: the other plants run, and `main` ends with 1.
            traceback.print_exc()
            why = f"{type(error).__name__}: {error}"[:300]
            yield from ({"plant": plant.name, "variant": each, "verdict": "failed", "why": why} for each in scored)
            continue
        for variant, expected in scored.items():
            cell = score(expected, shown[variant], twins[twin][variant])
            yield {"plant": plant.name, "variant": variant, **cell}


def rounded(value: object) -> Any:
    """To four digits: what is measured in microseconds is no more certain."""
    return json.loads(json.dumps(value), parse_float=lambda digits: float(f"{float(digits):.4g}"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("planted-idle.json"))
    parser.add_argument("--only", default=",".join(plant.name for plant in PLANTS), help="plants, with commas between")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--before", type=Path, help="an earlier result, whose verdicts stay beside the new ones")
    parser.add_argument("--keep", type=Path, help="a new folder for the runs; else they are thrown away")
    asked = parser.parse_args()
    plants = [plant for plant in PLANTS if plant.name in asked.only.split(",")]
    if len(plants) != len(asked.only.split(",")):
        parser.error(f"--only takes some of {', '.join(plant.name for plant in PLANTS)}")
    # Asked of the driver's management library, the question does not touch the GPU.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    importlib.import_module("torch._inductor.compile_fx")
    if asked.device == "cuda" and not torch.cuda.is_available():
        parser.error("no GPU here: --device cpu tries the programs, without figures of a GPU")
    sizes = Sizes() if asked.device == "cuda" else SMALL
    before = {"before": compact(json.loads(asked.before.read_text(encoding="utf-8")))} if asked.before else {}
    began = time.monotonic()
    cells: list[dict[str, Any]] = []
    twins: dict[str, dict[str, Shown]] = {}
    # `automatic_collection` lets one happen in a call.
    gc.set_threshold(sizes.objects * 2, 1000, 1000)
    about = {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "tracekit": tracekit.__version__,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "device": in_a_process(torch.cuda.get_device_name) if asked.device == "cuda" else "CPU: no GPU figures",
        "sizes": asdict(sizes),
    }
    with contextlib.ExitStack() as stack:
        folder = asked.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for plant in plants:
            for cell in cells_of(plant, sizes, folder, twins):
                cells.append(cell)
                sys.stdout.write(f"{row(cell)}\n")
                sys.stdout.flush()
            # After each plant: what was measured is kept whatever comes.
            about |= {"seconds": time.monotonic() - began, "summary": summary(cells)}
            told = json.dumps(rounded({**about, "cells": cells, **before}), separators=(",", ":"))
            asked.out.write_text(told + "\n", encoding="utf-8")
    sys.stdout.write(f"{json.dumps(rounded(about['summary']))} in {about['seconds']:.0f} s\n")
    return 1 if summary(cells).get("failed") else 0


if __name__ == "__main__":
    sys.exit(main())
