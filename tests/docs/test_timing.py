"""The figures that timing.md derives its warnings from are those that the code warns by."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from operator import truediv
from pathlib import Path
from statistics import median, variance

import pytest

from tracekit import store
from tracekit.cli.sweep_showing import load_sweep
from tracekit.comparison.one_process import LARGE, LARGE_WAITING, WAITING_DIFFERS, WAITING_SHARE
from tracekit.model.sweep import Cell
from tracekit.model.sweep_figures import CellFigures

from .test_gate_margins import waiting
from .texts import DOCS, ROOT

FOUR = r"([\d.]+, [\d.]+, (?:[\d.]+|—), (?:[\d.]+|—))"
ROW = re.compile(rf"^\| ([^|]+) \| (\d+) % \| (\d+) % \| {FOUR} \| {FOUR} \| ([\d.]+) \|$", re.M)
DEEPLAB, GRAPHS = "h200-deeplabv3-mobilenet-b16", "reduce-overhead"
DECODE = "qwen2.5-vl, decode --mode reduce-overhead"
GRAPHED = (
    *("resnet", "detr", "detr-resnet-101", "conditional-detr", "segformer", "convnext", "owlvit", "maskformer"),
    *("mask2former", "deeplabv3-mobilenet"),
)


@dataclass(frozen=True)
class Setting:
    """One row: idle shares in percent, then by time (cell, profile, cell, profile) eager's median and the speed-up;
    None where it was not timed again. How far the speed-ups are apart is in percent."""

    idle: tuple[int, int]
    eager_ms: tuple[float | None, ...]
    speedups: tuple[float | None, ...]
    apart: float

    @property
    def found(self) -> list[float]:
        return [each for each in self.speedups if each is not None]

    @property
    def ratio(self) -> float:
        return max(self.found) / min(self.found)


def figures(text: str) -> tuple[float | None, ...]:
    return tuple(None if each == "—" else float(each) for each in text.split(", "))


@cache
def timed_again() -> dict[str, Setting]:
    text = (DOCS / "timing.md").read_text(encoding="utf-8")
    return {
        name: Setting((int(one), int(other)), figures(eager), figures(speedups), float(apart))
        for name, one, other, eager, speedups, apart in ROW.findall(text)
    }


@cache
def cells_of(sweep: str) -> tuple[CellFigures, ...]:
    return load_sweep(ROOT / "sweeps" / sweep, calls=1000).cells


def test_speed_ups_are_as_far_apart_as_the_table_says() -> None:
    assert len(timed_again()) == 18
    for name, setting in timed_again().items():
        assert setting.apart == pytest.approx(100 * (setting.ratio - 1), abs=0.1), name


def test_the_bounds_follow_from_the_table() -> None:
    waiting = [each for each in timed_again().values() if max(each.idle) >= 100 * WAITING_SHARE]
    busy = [each for each in timed_again().values() if max(each.idle) < 100 * WAITING_SHARE]
    assert (len(waiting), len(busy)) == (16, 2)
    assert min(max(each.idle) for each in waiting) == 52 and max(max(each.idle) for each in waiting) == 82
    assert max(each.ratio for each in busy) < 1 + LARGE < max(each.ratio for each in waiting) < 1 + LARGE_WAITING
    groups = [[math.log(speedup) for speedup in each.found] for each in waiting]
    freedom = sum(len(each) - 1 for each in groups)
    deviation = math.sqrt(sum(variance(each) * (len(each) - 1) for each in groups) / freedom)
    assert deviation == pytest.approx(0.0575, abs=0.0005)


def test_the_bounds_hold_for_every_cell_that_was_run_both_times() -> None:
    both = [ratio for cell, ratio in ratios_of_both_times().items() if cell.request.workload != "beit"]
    assert len(both) == 44
    # BEiT's were apart by what the stack did to the earlier ones.
    assert max(both) - 1 == pytest.approx(WAITING_DIFFERS, abs=0.006) and max(both) < 1 + LARGE_WAITING
    some = set(waiting())
    pairs = [
        ratio
        for cell, ratio in ratios_of_both_times().items()
        if cell.request.workload != "beit" and (cell.request.workload, cell.request.batch_size) in some
    ]
    deviation = math.sqrt(sum(math.log(ratio) ** 2 for ratio in pairs) / len(pairs) / 2)
    assert (len(pairs), deviation) == (34, pytest.approx(0.059, abs=0.0005))
    assert math.log1p(LARGE_WAITING) / deviation / math.sqrt(2) == pytest.approx(4.0, abs=0.05)


def ratios_of_both_times() -> dict[Cell, float]:
    """Of every cell of the vision suite that has a speed-up both times, by how much the larger one is larger."""
    earlier, later = (
        {each.cell.key: each for each in cells_of(sweep)} for sweep in ("earlier-h200-vision", "h200-vision")
    )
    found: dict[Cell, float] = {}
    for key, cell in earlier.items():
        verdicts = cell.verdict, later[key].verdict
        speedups = [each.speedup for each in verdicts if each is not None and each.speedup is not None]
        if len(speedups) == 2:
            found[cell.cell] = max(speedups) / min(speedups)
    return found


@pytest.mark.parametrize(
    ("setting", "sweep", "work", "mode", "run"),
    [
        ("vit", "h200-vision", "vit-b1-", "default", "h200-vit"),
        ("vit --mode reduce-overhead", "h200-vision", "vit-b1-", "reduce-overhead", "h200-vit-reduce-overhead"),
        ("causal-lm", "h200-causal-lm", "causal-lm-b1-", "default", "h200-causal-lm"),
        ("flux", "h200-flux", "flux-b1-512x512-", "default", "h200-flux-compiled"),
        ("deeplabv3-mobilenet --batch-size 16", "h200-vision", "deeplabv3-mobilenet-b16-", "default", DEEPLAB),
        *(
            (f"{name} --mode {mode}", f"h200-{sweep}", f"{name}-b1-", mode, f"h200-{name}-{mode}")
            for name, sweep, mode in (
                *((name, "vision", GRAPHS) for name in GRAPHED),
                ("causal-lm", "causal-lm", GRAPHS),
                ("causal-lm", "causal-lm", "max-autotune"),
            )
        ),
        (DECODE, "h200-qwen2.5-vl", "qwen2.5-vl-b3-model-reduce-overhead-09aa2ea8", GRAPHS, "h200-qwen2.5-vl-decode"),
    ],
)
def test_committed_runs_and_cells_say_what_the_table_does(
    setting: str, sweep: str, work: str, mode: str, run: str
) -> None:
    said = timed_again()[setting]
    run_at = 3 if said.speedups[3] is not None else 1
    kept = [(run_at, *in_its_own_process(ROOT / "traces" / run))]
    timed_anew = said.speedups[2] is not None
    kept += [(2 if timed_anew else 0, *of_cell(sweep, work, mode))]
    kept += [(0, *of_cell("earlier-h200-vision", work, mode))] if timed_anew else []
    for at, eager_us, speedup in kept:
        assert eager_us / 1e3 == pytest.approx(said.eager_ms[at], rel=0.002), at
        assert speedup == pytest.approx(said.speedups[at], abs=6e-4), at


def of_cell(sweep: str, work: str, mode: str) -> tuple[float, float]:
    """Eager's median and the speed-up in a cell of a committed sweep."""
    cells = (each for each in cells_of(sweep) if each.cell.key.startswith(work) and each.cell.request.mode == mode)
    cell = next(each for each in cells if each.verdict)
    assert cell.eager is not None and cell.verdict is not None and cell.verdict.speedup is not None
    return cell.eager.median_us, cell.verdict.speedup


def in_its_own_process(folder: Path) -> tuple[float, float]:
    """The median eager call and the median ratio of the rounds; of a run that has more processes, in its own."""
    eager, compiled = store.load(folder).forms
    return median(eager.wall_us), median(
        one / other for one, other in zip(eager.wall_us, compiled.wall_us, strict=True)
    )


def repeats_of_beit() -> list[float]:
    """The median ratio of each repeat."""
    eager, compiled = store.load(ROOT / "traces" / "h200-beit").forms
    assert eager.timing is not None and compiled.timing is not None
    pairs = zip(eager.timing.processes, compiled.timing.processes, strict=True)
    return [median(map(truediv, one.wall_us, other.wall_us)) for one, other in pairs]


def test_beit_s_processes_agree_as_is_said() -> None:
    text = (DOCS / "timing.md").read_text(encoding="utf-8").replace("\n", " ")
    _, own = in_its_own_process(ROOT / "traces" / "h200-beit")
    cell, (least, *_, most) = of_cell("h200-vision", "beit-b1-", "default")[1], sorted(repeats_of_beit())
    assert f"BEiT's speed-up is {cell:.2f} in a sweep's process now, {own:.2f} in the run's own" in text
    assert f"and {least:.2f} to {most:.2f} in its four repeats" in text
    assert len(repeats_of_beit()) == 4
    assert f"found its speed-up to be {of_cell('earlier-h200-vision', 'beit-b1-', 'default')[1]:.2f} in" in text
