"""Timing without the profiler: synchronised calls, the forms in alternation."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

import torch

from tracekit.capture.compilation import watch_compilation
from tracekit.capture.device import synchronize
from tracekit.capture.forms import Form
from tracekit.model.progress import Progress
from tracekit.model.run import FormName


@dataclass
class Timings:
    """The timed calls as they come in, so that an interrupt keeps those that were made.

    Times are per form, in the order of measurement. `device_us` is between two device events, empty without a GPU.
    `peak_bytes` is the most memory a timed call held. `compilations` counts what was compiled inside timed calls.
    """

    wall_us: dict[FormName, list[float]] = field(default_factory=dict)
    device_us: dict[FormName, list[float]] = field(default_factory=dict)
    peak_bytes: dict[FormName, int] = field(default_factory=dict)
    compilations: dict[FormName, int] = field(default_factory=dict)
    order: list[FormName] = field(default_factory=list)


def time_forms(forms: tuple[Form, ...], iterations: int, seed: int, timings: Timings, progress: Progress) -> None:
    """Fills `timings` with `iterations` calls of each form.

    Each round calls every form once, in an order drawn anew, so that drift of the machine meets both alike.
    """
    shuffle = random.Random(seed).shuffle
    progress.phase("timing", total=iterations * len(forms), still=True)
    for _ in range(iterations):
        round_ = list(forms)
        shuffle(round_)
        for form in round_:
            _time_one(form, timings)
            progress.advance()


def _time_one(form: Form, timings: Timings) -> None:
    gpu = form.device != "cpu"
    if gpu:
        torch.cuda.reset_peak_memory_stats()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with form.ready(), watch_compilation() as watch:
        synchronize(form.device)
        start_ns = time.perf_counter_ns()
        if gpu:
            begin.record()
        form.call()
        if gpu:
            end.record()
        synchronize(form.device)
        wall_us = (time.perf_counter_ns() - start_ns) / 1e3
    timings.wall_us.setdefault(form.name, []).append(wall_us)
    timings.compilations[form.name] = timings.compilations.get(form.name, 0) + watch.compilations
    timings.order.append(form.name)
    if gpu:
        timings.device_us.setdefault(form.name, []).append(begin.elapsed_time(end) * 1e3)
        peak = torch.cuda.max_memory_allocated()
        timings.peak_bytes[form.name] = max(timings.peak_bytes.get(form.name, 0), peak)
