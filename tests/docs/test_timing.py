"""The figures that timing.md derives its warnings from are those that the code warns by."""

from __future__ import annotations

import math
import re
from functools import cache
from operator import truediv
from pathlib import Path
from statistics import median

import pytest

from tracekit import store
from tracekit.cli.sweep_showing import load_sweep
from tracekit.comparison.one_process import LARGE, LARGE_WAITING, WAITING_DIFFERS, WAITING_SHARE
from tracekit.model.sweep_figures import CellFigures

from .texts import DOCS, ROOT

ROW = re.compile(r"^\| ([^|]+) \| (\d+) % \| (\d+) % \| ([\d.]+), ([\d.]+) \| ([\d.]+), ([\d.]+) \| ([\d.]+) \|$", re.M)
DEEPLAB, GRAPHS = "h200-deeplabv3-mobilenet-b16", "reduce-overhead"
DECODE = "qwen2.5-vl, decode --mode reduce-overhead"
GRAPHED = (
    *("resnet", "detr", "detr-resnet-101", "conditional-detr", "segformer", "convnext", "owlvit", "maskformer"),
    *("mask2former", "deeplabv3-mobilenet"),
)


@cache
def timed_twice() -> dict[str, tuple[float, ...]]:
    """By setting: idle shares, eager medians and speed-ups of both times, how far these are apart in percent."""
    text = (DOCS / "timing.md").read_text(encoding="utf-8")
    return {name: tuple(map(float, figures)) for name, *figures in ROW.findall(text)}


@cache
def cells_of(sweep: str) -> tuple[CellFigures, ...]:
    return load_sweep(ROOT / "sweeps" / sweep, calls=1000).cells


def ratio_of(figures: tuple[float, ...]) -> float:
    return max(figures[4:6]) / min(figures[4:6])


def test_speed_ups_are_as_far_apart_as_the_table_says() -> None:
    assert len(timed_twice()) == 19
    for name, figures in timed_twice().items():
        assert figures[6] == pytest.approx(100 * (ratio_of(figures) - 1), abs=0.1), name


def test_the_bounds_follow_from_the_table() -> None:
    waiting = [each for each in timed_twice().values() if max(each[:2]) >= 100 * WAITING_SHARE]
    busy = [each for each in timed_twice().values() if max(each[:2]) < 100 * WAITING_SHARE]
    assert (len(waiting), len(busy)) == (17, 2)
    assert max(map(ratio_of, busy)) < 1 + LARGE < max(map(ratio_of, waiting)) < 1 + LARGE_WAITING
    beit = (timed_twice()["beit"][4], *(pair[2] for pair in repeats_of_beit()))
    assert max(beit) / min(beit) - 1 == pytest.approx(WAITING_DIFFERS, abs=0.005)
    assert WAITING_DIFFERS < LARGE_WAITING
    deviation = math.sqrt(sum(math.log(ratio_of(each)) ** 2 for each in waiting) / len(waiting) / 2)
    assert deviation == pytest.approx(0.055, abs=0.0005)


@pytest.mark.parametrize(
    ("setting", "sweep", "work", "mode", "run"),
    [
        ("vit", "h200-vision", "vit-b1-", "default", "h200-vit"),
        ("vit --mode reduce-overhead", "h200-vision", "vit-b1-", "reduce-overhead", "h200-vit-reduce-overhead"),
        ("causal-lm", "h200-causal-lm", "causal-lm-b1-", "default", "h200-causal-lm"),
        ("flux", "h200-flux", "flux-b1-512x512-", "default", "h200-flux-compiled"),
        ("beit", "h200-vision", "beit-b1-", "default", "h200-beit"),
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
    _, _, cell_ms, run_ms, cell_speedup, run_speedup, _ = timed_twice()[setting]
    cell = next(
        each
        for each in cells_of(sweep)
        if each.cell.key.startswith(work) and each.verdict and each.cell.request.mode == mode
    )
    eager_us, speedup = in_its_own_process(ROOT / "traces" / run)
    assert cell.eager is not None and cell.verdict is not None
    assert (cell.eager.median_us / 1e3, eager_us / 1e3) == (
        pytest.approx(cell_ms, rel=0.002),
        pytest.approx(run_ms, rel=0.002),
    )
    assert (cell.verdict.speedup, speedup) == (
        pytest.approx(cell_speedup, abs=6e-4),
        pytest.approx(run_speedup, abs=6e-4),
    )


def in_its_own_process(folder: Path) -> tuple[float, float]:
    """The median eager call and the median ratio of the rounds; of a run that has more processes, in its own."""
    eager, compiled = store.load(folder).forms
    return median(eager.wall_us), median(
        one / other for one, other in zip(eager.wall_us, compiled.wall_us, strict=True)
    )


def repeats_of_beit() -> list[tuple[float, float, float]]:
    """Of each repeat the median eager and compiled call, and the median ratio."""
    eager, compiled = store.load(ROOT / "traces" / "h200-beit").forms
    assert eager.timing is not None and compiled.timing is not None
    return [
        (median(one.wall_us), median(other.wall_us), median(map(truediv, one.wall_us, other.wall_us)))
        for one, other in zip(eager.timing.processes, compiled.timing.processes, strict=True)
    ]


def test_the_run_s_own_process_of_beit_stands_alone_as_is_said() -> None:
    text = (DOCS / "timing.md").read_text(encoding="utf-8").replace("\n", " ")
    pairs = repeats_of_beit()
    _, compiled = store.load(ROOT / "traces" / "h200-beit").forms
    own_us, speedup = in_its_own_process(ROOT / "traces" / "h200-beit")
    eager, calls, ratios = (sorted(pair[at] for pair in pairs) for at in range(3))
    assert f"took {median(compiled.wall_us) / 1e3:.2f} ms a call, in the four others" in text
    assert f"{calls[0] / 1e3:.2f} to {calls[-1] / 1e3:.2f} ms, while eager took {own_us / 1e3:.2f} ms and" in text
    assert f"{eager[0] / 1e3:.2f} to {eager[-1] / 1e3:.2f} ms. So the speed-up was {speedup:.2f} in the one" in text
    assert f"and {ratios[0]:.2f} to {ratios[-1]:.2f} in the others" in text
    assert len(pairs) == 4
