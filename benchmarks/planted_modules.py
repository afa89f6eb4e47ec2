"""How much of a CPU's operator time each module takes, held against what the order of operators says.

    python -m benchmarks.planted_modules results/planted-modules.json

Three modules run one after the other, whole and with a graph break after each. In the very recordings that tracekit
reads each operator's module is then known without it: of the eager form by the operators that each module runs alone,
in their order, of the compiled one with breaks by the graph that is called. What is told is the largest difference of a
module's time, as a share of the step. Where all three are one graph nobody knows it otherwise.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import click
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

CALLS = 12
NAMES = ("one", "two", "three")


class Chain(nn.Module):
    """Three modules, one after the other; with `breaks` a graph break after each."""

    def __init__(self, one: nn.Module, two: nn.Module, three: nn.Module, *, breaks: bool) -> None:
        super().__init__()
        self.one, self.two, self.three, self.breaks = one, two, three, breaks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Dynamo skips a function that breaks in a loop.
        x = self.one(x)
        if self.breaks:
            torch._dynamo.graph_break()
        x = self.two(x)
        if self.breaks:
            torch._dynamo.graph_break()
        return self.three(x)


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.project(x).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        found = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.out(found.transpose(1, 2).flatten(2))


def feed(width: int, inner: int) -> nn.Module:
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))


def convolve(before: int, after: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())


def linear(*, breaks: bool) -> tuple[nn.Module, torch.Tensor]:
    return Chain(feed(128, 256), feed(128, 512), feed(128, 1024), breaks=breaks), torch.randn(8, 128, 128)


def attending(*, breaks: bool) -> tuple[nn.Module, torch.Tensor]:
    return Chain(Attention(128), feed(128, 512), Attention(128), breaks=breaks), torch.randn(4, 256, 128)


def convolving(*, breaks: bool) -> tuple[nn.Module, torch.Tensor]:
    return Chain(convolve(3, 32), convolve(32, 64), convolve(64, 16), breaks=breaks), torch.randn(4, 3, 64, 64)


def pointwise(*, breaks: bool) -> tuple[nn.Module, torch.Tensor]:
    return Chain(nn.LayerNorm(512), nn.GELU(), nn.Softmax(-1), breaks=breaks), torch.randn(64, 128, 512)


PROGRAMS: dict[str, Callable[..., tuple[nn.Module, torch.Tensor]]] = {
    each.__name__: each for each in (linear, attending, convolving, pointwise)
}


def build(program: str, breaks: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """What `tracekit profile` builds."""
    torch.manual_seed(0)
    model, x = PROGRAMS[program](breaks=breaks == "yes")
    return model.eval(), (x,)


def outermost(spans: list[dict[str, Any]], start: float, end: float, thread: object) -> list[dict[str, Any]]:
    """The operators between two moments, without those within others."""
    found, until = [], start
    for each in spans:
        is_operator = "::" in each["name"] or "cpp_fused" in each["name"]
        if is_operator and until <= each["ts"] < end and each["tid"] == thread:
            found.append(each)
            until = each["ts"] + each["dur"]
    return found


def spans_of(recording: Path) -> list[dict[str, Any]]:
    with gzip.open(recording) as file:
        events = json.load(file)["traceEvents"]
    spans = [each for each in events if each.get("ph") == "X" and each["cat"] in ("cpu_op", "user_annotation")]
    return sorted(spans, key=lambda each: (each["ts"], -each["dur"]))


def alone(module: nn.Module, x: torch.Tensor) -> tuple[list[str], torch.Tensor]:
    """The names of the operators that a module runs by itself, and what it returns."""
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU]) as profiler:
        y = module(x)
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "alone.json.gz"
        profiler.export_chrome_trace(str(raw))
        spans = spans_of(raw)
    return [each["name"] for each in outermost(spans, spans[0]["ts"], float("inf"), spans[0]["tid"])], y


def truth(program: str, breaks: str, recording: Path, *, compiled: bool) -> dict[str, float]:
    """Microseconds of each module in one step: of each of its operators the median of all steps."""
    spans = spans_of(recording)
    steps = [each for each in spans if each["name"].startswith("tracekit.step#")]
    lengths: dict[str, list[list[float]]] = {name: [] for name in NAMES}
    model, (x,) = build(program, breaks)
    names: list[tuple[str, list[str]]] = []
    for name in NAMES:
        own, x = alone(model.get_submodule(name), x)
        names.append((name, own))
    for step in steps:
        start, end, thread = step["ts"], step["ts"] + step["dur"], step["tid"]
        if compiled:
            graphs = [each for each in spans if each["name"].startswith("## Call ") and start <= each["ts"] < end]
            assert len(graphs) == len(NAMES), "one graph a module"
            parts = [outermost(spans, each["ts"], each["ts"] + each["dur"], thread) for each in graphs]
        else:
            every = iter(outermost(spans, start, end, thread))
            parts = [[next(every) for _ in own] for _, own in names]
            assert [[each["name"] for each in part] for part in parts] == [own for _, own in names]
        for name, part in zip(NAMES, parts, strict=True):
            lengths[name].append([each["dur"] for each in part])
    return {name: sum(map(median, zip(*each, strict=True))) for name, each in lengths.items()}


def told(program: str, breaks: str, folder: Path) -> dict[str, dict[str, float]]:
    """What tracekit says of each form, after it has recorded both."""
    words = [*("profile", f"{Path(__file__)}:build", "--compiled", "--no-fullgraph", "--iterations", str(CALLS))]
    words += [*("--out", str(folder), "--json", "-", "--", "--program", program, "--breaks", breaks)]
    command = [sys.executable, "-m", "tracekit", *words]
    # On the CPU, where a GPU is, too.
    variables = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    made = subprocess.run(command, cwd=folder.parent, env=variables, capture_output=True, text=True, check=True)
    root = json.loads(made.stdout)["modules"]
    found: dict[str, dict[str, float]] = {"eager": {}, "compiled": {}}
    for form, key in (("eager", "a_us"), ("compiled", "b_us")):
        look(root, key, found[form])
        found[form]["no one module"] = root[key] - sum(found[form].values())
    return found


def look(node: dict[str, Any], key: str, found: dict[str, float]) -> None:
    """Each module right below the model; one that holds one other alone goes by that one's path."""
    _, _, part = node["path"].partition("model.")
    if part:
        name = part.partition(".")[0]
        found[name] = found.get(name, 0.0) + node[key]
        return
    for child in node["children"]:
        look(child, key, found)


def main() -> None:
    results = []
    for program in PROGRAMS:
        for breaks in ("no", "yes"):
            with tempfile.TemporaryDirectory() as folder:
                run = Path(folder) / "run"
                said = told(program, breaks, run)
                for form in ("eager", "compiled") if breaks == "yes" else ("eager",):
                    true = truth(program, breaks, run / f"{form}-light.json.gz", compiled=form == "compiled")
                    whole = sum(true.values())
                    apart = max(abs(said[form].get(name, 0.0) - us) for name, us in true.items()) / whole
                    rounded = [{name: round(us, 1) for name, us in each.items()} for each in (true, said[form])]
                    of = {"program": program, "breaks": breaks, "form": form}
                    results.append({**of, "true_us": rounded[0], "told_us": rounded[1]})
                    click.echo(f"{program:12} breaks {breaks:3} {form:9} {100 * apart:6.2f} % of the step apart")
    Path(sys.argv[1]).write_text(json.dumps({"torch": torch.__version__, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
