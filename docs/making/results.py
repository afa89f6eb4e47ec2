"""docs/results.md and README's short table, from `results/*.json`: `python -m docs.making.results`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tracekit.comparison.judging.processes import next_speedup95
from tracekit.model.timing import span_of_calls
from tracekit.numbers import calls_span, duration, times
from tracekit.report.words.common import ratio_span
from tracekit.workloads.registry import all_workloads

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "results.md"
README = ROOT / "README.md"
MARKS = ("<!-- results: python -m docs.making.results -->\n", "<!-- /results -->")
#: The runs of README's table, and why: a gain of each kind, one that is small, and a loss.
SHORT = {
    "h100-4p-flux": "less GPU idle; qk-norm and RoPE fused",
    "h100-4p-qwen-decode": "CUDA graphs",
    "h100-4p-vit": "less GPU idle; fused attention lost",
    "h100-4p-vit-ro": "CUDA graphs",
    "h100-4p-resnet-ro": "CUDA graphs",
    "h100-4p-deeplab-b16": "slower channels-last convolutions",
}
SHORT_HEADER = (
    "| `tracekit profile` | eager | compiled | speed-up | processes, least to greatest | next process here, 95 % |"
    " why |\n|---|--:|--:|--:|--:|--:|---|\n"
)
HEADER = (
    "| `tracekit profile` | GPU | eager | compiled | speed-up (of what was timed) | next process here, 95 % |"
    " GPU busy | GPU idle | compile time, s | break-even, calls |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
)
BEGIN = """# Results

NVIDIA H200s and H100s, November 2026: torch 2.11, CUDA 13.0, triton 3.6,
diffusers 0.42, transformers 5.17.
Architectures have their full size and random weights. Batch 1 and bfloat16 unless a row says more; MaskFormer is
float32. `results/*.json` also hold settings, environments, memory and commands.

Reports: [FLUX.1-dev](../reports/h100-flux-compiled.md),
[Qwen2.5-VL, one token](../reports/h100-qwen2.5-vl-decode.md), ViT-B/16 in [default mode](../reports/h100-vit.md) and
[with CUDA graphs](../reports/h100-vit-reduce-overhead.md),
[a sweep of Qwen2.5-VL](../reports/sweep-h200-qwen2.5-vl.md).

![The first screen of the Qwen2.5-VL report: one decoded token, eager and with CUDA graphs](pictures/qwen.png)

## Four that differ

- **FLUX.1-dev** on an H200: kernel time −60.0 ms. The qk-norms and RoPE are fused, 20 kernels into 1, 152× per call.
  GEMMs and attention are unchanged.
- **ViT-B/16**: kernel time grows in every mode, because fused SDPA is lost. CUDA graphs still give 3.47×: the GPU is
  idle for 82 % of the eager call.
- **DeepLabV3, batch 16**: 1.5 times slower. Inductor makes convolutions channels-last, and cuDNN is slower at ten of
  them. `--verify-advice` measured `TORCHINDUCTOR_LAYOUT_OPTIMIZATION=0`: 1.29×.
- **ResNet-50** is host-bound: 5.85× to 7.05× in four processes on H200s, 7.97× to 9.90× on an H100.
  `--repeat-process 4` [measures that](timing.md#several-processes).

## Runs

A row is one run of `tracekit profile ... --compiled`. In brackets is the 95 % interval of its process, or the range of
the four processes that it was timed in (`beit`: the interval of five; H200 intervals are bootstraps of the median
ratio). Another process's speed-up on that host lies in the [next column](timing.md#several-processes) 95 times in 100.
GPU busy and idle are changes per call of the process that was recorded; of jobs they hold waiting for other ranks
and are not given. Compile time and break-even are of an empty cache, ResNet's on an H100 and `flux --nproc 2`'s of a
filled one. FLUX was power-capped. FLUX on H200s and Qwen's `generate` were timed
[without room on Python's stack](timing.md#room-on-pythons-stack), with which compiled calls of others were at most 12 %
shorter, BEiT's up to half. `--nproc 2` is a job on two H200s of one host, which was slow and uneven then.

"""
SWEEPS = """
## Sweeps

A cell is one process, which times eager too; cells of several batch sizes stand together. "—" failed or was not
measured, `?` is inconclusive, `~` is [not beyond chance](sweep.md#which-modes-are-faster) for other processes. Only the
vision suite's batch 1 and 4, and BEiT, were timed [with room on the stack](timing.md#room-on-pythons-stack).
"""


def read(name: str) -> Any:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def runs() -> list[dict[str, Any]]:
    """In the order in which `tracekit workloads` lists their workloads."""
    order = {workload.name: place for place, workload in enumerate(all_workloads())}
    return sorted(read("runs.json")["runs"], key=lambda run: order[workload_of(run["works_as"])])


def workload_of(command: str) -> str:
    """Of `NAME=value tracekit profile flux` it is flux."""
    return command.rpartition("tracekit profile ")[2].split()[0]


def speedup(verdict: dict[str, Any]) -> str:
    low, high = verdict.get("process_range") or verdict["ci95"]
    of = f" in {verdict['processes']}" if "process_range" in verdict else ""
    return f"{times(verdict['speedup'])} ({low:.3f} to {high:.3f}{of})"


def next_process(run: dict[str, Any]) -> str:
    """Where another process's speed-up lies; of jobs of several ranks that was not measured."""
    if (run.get("settings") or {}).get("nproc"):
        return "—"
    verdict, shares = run["verdict"], [run[form].get("idle_share") for form in ("eager", "compiled")]
    low, high = verdict["ci95"]
    apart = verdict.get("process_range")
    return ratio_span(*next_speedup95(verdict["speedup"], (low, high), verdict.get("processes", 1), shares, apart))


def _signed(us: float) -> str:
    return f"{'−' if us < 0 else '+'}{duration(abs(us))}"


def pays_after(told: dict[str, Any] | None) -> str:
    """Between how many calls."""
    if told is None:
        return "—"
    if told["never"]:
        return "never"
    span = span_of_calls(told.get("calls"), told.get("calls_at_most"), told.get("calls_ci95"))
    if span is None:
        # Of a run whose report alone was kept the larger end is all that is known.
        return f"at most {calls_span(told['calls_at_most'])}" if "calls_at_most" in told else "—"
    return calls_span(*span)


def row(run: dict[str, Any]) -> str:
    verdict, (a, b) = run["verdict"], (run["eager"], run["compiled"])
    # Of a run whose report alone was kept these are not known; a rank that waits for others is busy, too.
    keys = ("busy_us", "unprofiled_idle_us") if not (run.get("settings") or {}).get("nproc") else (None, None)
    known = (key if key and None not in (a.get(key), b.get(key)) else None for key in keys)
    changes = [_signed(b[key] - a[key]) if key else "—" for key in known]

    even = next(iter(run["break_even"]), None)
    gpu = run["environment"]["gpu"].removeprefix("NVIDIA ").partition(" ")[0]
    cells = (
        *(f"`{run['works_as']}`", gpu),
        *(duration(verdict["a_wall_us"]), duration(verdict["b_wall_us"]), speedup(verdict), next_process(run)),
        *(*changes, f"{run['compilation']['seconds']:.0f}", pays_after(even)),
    )
    return "| " + " | ".join(cells) + " |\n"


def short_table() -> str:
    """README's."""
    found = {run["name"]: run for run in runs()}
    rows = []
    for run, why in ((found[name], why) for name, why in SHORT.items()):
        verdict = run["verdict"]
        walls = (duration(verdict[key]) for key in ("a_wall_us", "b_wall_us"))
        spread = ratio_span(*verdict["process_range"]) if "process_range" in verdict else "one process"
        cells = (f"`{run['works_as']}`", *walls, times(verdict["speedup"]), spread, next_process(run), why)
        rows.append("| " + " | ".join(cells) + " |\n")
    return SHORT_HEADER + "".join(rows)


def sweep(name: str) -> str:
    """One row a work, its batch sizes together, one column for each combination of mode and scope."""
    told = read(f"{name}.json")
    columns = list(dict.fromkeys(column for work in told["works"] for column in _cells(work)))
    lines = [f"\n### {told['name']}\n\n"]
    lines.append("| work | eager | " + " | ".join(columns) + " |\n|---|--:|" + "--:|" * len(columns) + "\n")
    rows: dict[str, list[dict[str, Any]]] = {}
    for work in told["works"]:
        rows.setdefault(_work(work, "N"), []).append(work)
    for works in rows.values():
        batches = "/".join(str(_batch(work)) for work in works)
        eager = ", ".join(duration(work["eager"]["median_us"]) if work["eager"] else "—" for work in works)
        gains = (", ".join(_gain(_cells(work).get(each)) for work in works) for each in columns)
        lines.append(f"| {_work(works[0], batches)} | {eager} | " + " | ".join(gains) + " |\n")
    return "".join(lines)


def _cells(work: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {_column(cell): cell for cell in work["cells"] if cell["form"] != "eager"}


def _column(cell: dict[str, Any]) -> str:
    scope = cell.get("scope")
    return cell["mode"] + (f", {scope}" if scope not in (None, "model") else "")


def _batch(work: dict[str, Any]) -> object:
    return (work["settings"] or {}).get("batch_size", "—")


def _work(work: dict[str, Any], batch: str) -> str:
    settings = work["settings"] or {}
    size = f", {settings['width']}×{settings['height']}" if settings.get("width") else ""
    generation = settings.get("generation") or {}
    text = "".join(f", {generation[key]}" for key in ("phase", "cache") if generation.get(key))
    return f"{work['workload']}, batch {batch}{size}{text}"


def _gain(cell: dict[str, Any] | None) -> str:
    verdict = cell and cell.get("verdict")
    if not cell or not verdict or verdict["speedup"] is None:
        return "—"
    doubt = "?" if verdict["result"] == "inconclusive" else "~" if cell["result"] == "inconclusive" else ""
    return f"{times(verdict['speedup'])}{doubt}"


def page() -> str:
    sweeps = sorted(path.stem for path in RESULTS.glob("sweep-*.json"))
    return BEGIN + HEADER + "".join(map(row, runs())) + SWEEPS + "".join(map(sweep, sweeps))


def readme(text: str) -> str:
    """README with its table as it is now."""
    before, rest = text.split(MARKS[0])
    return before + MARKS[0] + short_table() + MARKS[1] + rest.split(MARKS[1])[1]


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
