"""Compact results of runs and sweeps: `python -m docs.making.collecting RUN|SWEEP...` writes into `results/`.

Of a run the figures are those of `tracekit compare RUN --json`, of a sweep those of `tracekit sweep --show SWEEP
--json`, without recordings and without single calls. A run of the same name takes the place of the older one;
`results/README.md` says what each key is.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from tracekit import store
from tracekit.cli.profile import profile
from tracekit.model.comparison import Comparison
from tracekit.model.option import option_words
from tracekit.model.workload import Request
from tracekit.reading.sides import compare_forms
from tracekit.report.contract import comparison_json
from tracekit.shell import split_variables, with_variables
from tracekit.workloads.registry import find

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
RUNS = RESULTS / "runs.json"
SCHEMA = "tracekit.results/1"
#: So many parts of a waterfall are kept, the largest; the others are one sum.
LARGEST = 6
#: Of the settings these say nothing of how fast it is, or are a run's own.
PLAIN = ("device", "own", "variables")
MACHINE = ("gpu", "driver", "cuda", "cpu", "cpu_threads", "python", "float32_matmul_precision")
CELL = ("outcome", "seconds", "verdict", "compile_seconds", "graphs", "graph_breaks", "during_timing")
TIMES = ("calls", "mean_us", "mean_ci95", "median_us", "median_ci95", "memory_bytes", "warmup_memory_bytes")
EVEN = ("source", "calls", "calls_at_most", "calls_ci95", "first_call_us", "startup_us", "eager_startup_us", "never")
#: What is generated, and with which cache, where nobody says.
GENERATING = {"phase": "generate", "cache": "dynamic"}


def some(told: dict[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any] | None:
    """These keys of it, without what was not measured."""
    return told and {name: told[name] for name in names if told[name] is not None}


def settings_of(told: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in told.items() if value is not None and key not in PLAIN}
    return {**kept, **({"variables": told["variables"]} if told["variables"] else {})}


def shortened(command: str) -> str:
    """Of `tracekit profile flux --compiled --out X`: `flux`. What is asked for in another order is the same. Of a
    command with variables set for it everything: `NAME=value tracekit profile flux`."""
    variables, words = split_variables(command)
    given = profile.make_context("profile", words[2:]).params
    asked = asked_for(Request(**{name: given[name] for name in Request.__struct_fields__ if name in given}))
    return with_variables(f"tracekit profile {asked}", variables) if variables else asked


def asked_for(request: Request) -> str:
    """What is asked for beside what `tracekit profile` does of itself: `flux --scope all`."""
    info, plain = find(request.workload), Request(request.workload)
    usual = {"size": next(iter(info.sizes)), "scope": next(iter(info.scopes)), "iterations": request.iterations}
    usual |= GENERATING
    words = [request.workload]
    for name in Request.__struct_fields__:
        value = getattr(request, name)
        if value in (getattr(plain, name), usual.get(name)):
            continue
        words += ["--", *value] if name == "options" else option_words(name, value)
    return shlex.join(words)


def collect_run(folder: Path, comparison: Comparison | None = None) -> dict[str, Any]:
    """What a run folder says, without its recordings; its forms are compared unless they were."""
    run = store.load(folder)
    told = json.loads(comparison_json(comparison or compare_forms(folder, run)))
    compilation = told["b"]["form"]["compilation"]
    environment = told["b"]["environment"]
    return {
        "name": folder.resolve().name,
        "command": run.command,
        "works_as": shortened(run.command or ""),
        "started": run.started,
        "settings": settings_of(told["b"]["settings"]),
        "environment": {**{key: environment[key] for key in MACHINE}, "packages": environment["packages"]},
        "verdict": {key: value for key, value in _verdict(told["verdict"]).items() if value is not None},
        "eager": _form(told["a"]),
        "compiled": _form(told["b"]),
        "reason": told["reason"] and {**told["reason"], "shares": [*map(_share, told["reason"]["shares"])]},
        "waterfall": _waterfall(told["waterfall"]),
        "compilation": {key: compilation[key] for key in ("seconds", "graphs", "graph_breaks", "during_timing")},
        "break_even": [{"kind": each["kind"], **(some(each, EVEN) or {})} for each in told["break_even"]],
        "accuracy": told["accuracy"] and told["accuracy"]["result"],
        "findings": [_finding(each) for each in told["findings"]],
        "kernels_matched_by": sorted({each["how"] for each in told["groups"]}),
    }


def _verdict(told: dict[str, Any]) -> dict[str, Any]:
    """Without what follows from the rest: where the next process lies."""
    return {key: value for key, value in told.items() if key != "next_process95"}


def _form(side: dict[str, Any]) -> dict[str, Any]:
    per_step, form = side["per_step"], side["form"]
    idle = {f"{key}": per_step[key] for key in ("busy_us", "unprofiled_idle_us", "idle_share")}
    return {
        "wall_us": per_step["wall_us"],
        **idle,
        "kernels": side["analysis"]["kernels"]["count"] / side["steps"],
        "launches": side["analysis"]["launches"]["count"] / side["steps"],
        "steady_memory_bytes": form["memory"] and form["memory"]["steady"],
        "bound": side["bound"] and side["bound"]["kind"],
    }


def _share(share: dict[str, Any]) -> dict[str, Any]:
    return {**share, "parts": [some(part, ("kind", "label", "delta_us")) for part in share["parts"]]}


def _waterfall(told: dict[str, Any] | None) -> dict[str, Any] | None:
    if told is None:
        return None
    parts = sorted(told["parts"], key=lambda part: -abs(part["delta_us"]))
    return {
        **{key: told[key] for key in ("basis", "a_us", "b_us", "residual_us")},
        "parts": [some(part, ("kind", "label", "delta_us")) for part in parts[:LARGEST]],
        "rest_us": sum(part["delta_us"] for part in parts[LARGEST:]),
    }


def _finding(told: dict[str, Any]) -> dict[str, Any]:
    tried = some(told["verified"], ("command", "speedup", "ci95", "measured_us", "eager_us", "predicted_speedup"))
    return {**(some(told, ("code", "severity", "saving_us")) or {}), **({"verified": tried} if tried else {})}


def collect_sweep(folder: Path) -> dict[str, Any]:
    """What a sweep's folder says, without its calls."""
    from tracekit.report.contract import json_text
    from tracekit.sweep.commands.showing import load_sweep
    from tracekit.sweep.running.folder import SweepFolder

    told = json.loads(json_text(load_sweep(folder, calls=1000)))
    kept = {key: told[key] for key in ("name", "suite", "published_source", "differs", "warnings")}
    asked = SweepFolder(folder).asked()
    kept["commands"] = list(dict.fromkeys(call.command for call in asked.calls)) if asked else []
    published = [_published(each) for each in told["published"]]
    return {"schema": SCHEMA, **kept, "published": published, "works": [*map(_work, told["works"])]}


def _published(told: dict[str, Any]) -> dict[str, Any]:
    return {**told["published"], "here": {key: value for key, value in told.items() if key != "published"}}


def _work(told: dict[str, Any]) -> dict[str, Any]:
    confirmed = [_confirmed(each) for each in told["best"] if each["confirmed"]]
    kept = {key: told[key] for key in ("key", "workload", "machine", "torch", "eager")}
    # A work's settings are those of all its cells, which differ in mode and scope.
    settings = settings_of(told["settings"]) if told["settings"] else None
    return {**kept, "settings": settings, "cells": [*map(_cell, told["cells"])], "confirmed": confirmed}


def _confirmed(best: dict[str, Any]) -> dict[str, Any]:
    mode = some(best["candidates"][0], ("mode", "scope")) or {}
    told = some(best["confirmed"], ("outcome", "started", "speedup", "ci95", "next_process95")) or {}
    return {**mode, **told}


def _cell(told: dict[str, Any]) -> dict[str, Any]:
    request = told["cell"]["request"]
    failure = told["failure"] and some(told["failure"], ("kind", "message", "during"))
    return {
        **(some(told["cell"], ("form",)) or {}),
        **(some(request, ("mode", "scope", "cache", "phase")) or {}),
        **(some({**told, "verdict": told["verdict"] and _verdict(told["verdict"])}, CELL) or {}),
        "eager": some(told["eager"], TIMES),
        "compiled": some(told["compiled"], TIMES),
        "break_even": some(told["break_even"], EVEN),
        **({"failure": failure} if failure else {}),
        **(some(told, ("result", "chance")) or {}),
    }


def write(path: Path, told: dict[str, Any], *lists: str) -> None:
    """One entry of the lists a line, so that a change is a line too. Figures have seven digits."""
    lines = []
    for key, value in told.items():
        if key in lists:
            entries = ",\n".join(f"  {_dense(each)}" for each in value)
            lines.append(f' "{key}": [\n{entries}\n ]')
        else:
            lines.append(f' "{key}": {_dense(value)}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _dense(told: Any) -> str:
    # The nearest figure of so many digits, which no machine's last bit changes.
    rounded = json.loads(json.dumps(told), parse_float=lambda digits: float(f"{float(digits):.7g}"))
    return json.dumps(rounded, ensure_ascii=False, separators=(",", ":"))


def read_runs() -> list[dict[str, Any]]:
    return json.loads(RUNS.read_text(encoding="utf-8"))["runs"] if RUNS.exists() else []


def main(folders: list[Path]) -> None:
    runs = {run["name"]: run for run in read_runs()}
    for folder in folders:
        if (folder / "cells").is_dir():
            name = folder.resolve().name
            write(RESULTS / f"sweep-{name}.json", collect_sweep(folder), "works", "published")
        else:
            run = collect_run(folder)
            runs[run["name"]] = run
    write(RUNS, {"schema": SCHEMA, "runs": [runs[name] for name in sorted(runs)]}, "runs")


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
