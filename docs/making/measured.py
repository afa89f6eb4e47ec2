"""README's table of findings, from runs and sweeps themselves: `python -m docs.making.measured RUN|SWEEP...`.

What each says is kept in `docs/measured.json`, for not every run is committed, and the table between README's two marks
is written anew from that. A row is known by its command: a run with the same one takes its place, for a run has a trace
and says why. Of a sweep each work that has the sweep's smallest batch has a row: the compiled cell that is fastest
beside eager.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from tracekit import store
from tracekit.cli.profile import profile
from tracekit.cli.sweep_showing import load_sweep
from tracekit.comparison import compare
from tracekit.comparison.sweeping.commanding import option_words
from tracekit.model.comparison import Comparison
from tracekit.model.startup import BreakEven
from tracekit.model.sweep_figures import CellFigures, Work
from tracekit.model.workload import Request
from tracekit.numbers import duration, times
from tracekit.report.sections.reason import reason_sentence
from tracekit.shell import split_variables, with_variables
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side
from tracekit.walks.sweep_folder import is_sweep
from tracekit.workloads.registry import all_workloads, find

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "measured.json"
README = ROOT / "README.md"
MARKS = ("<!-- measured: python -m docs.making.measured -->\n", "<!-- /measured -->")
HEADER = (
    "| `tracekit profile` | eager | compiled | speed-up (95 % interval) | compiling | pays after, at most | why |\n"
    "|---|--:|--:|--:|--:|--:|---|\n"
)
#: What is generated, and with which cache, where nobody says.
GENERATING = {"phase": "generate", "cache": "dynamic"}


@dataclass(frozen=True, slots=True)
class Row:
    """One run, or one cell of a sweep. `pays_after_calls` is None where compiling never pays, `why` the waterfall in a
    sentence; None of a cell, which has none. `result` is the verdict, `report` the page that shows the rest, from the
    repository's top."""

    command: str
    gpu: str
    torch: str
    eager_us: float
    compiled_us: float
    speedup: float
    ci95: tuple[float, float]
    compile_seconds: float
    pays_after_calls: float | None
    why: str | None
    result: str = "faster"
    report: str | None = None


def read_row(folder: Path) -> Row:
    """What a run folder says. Raises SystemExit where it established no difference: such a run is no finding."""
    run = store.load(folder)
    reading = Reading(shapes=True, cached=False)
    a, b = (load_side(folder, form=form, reading=reading) for form in ("eager", "compiled"))
    comparison = compare(a, b, run.order)
    verdict, why = comparison.verdict, _why(comparison)
    facts = b.form.compilation if b.form else None
    if verdict.ci95 is None or verdict.speedup is None or facts is None or why is None:
        sys.exit(f"{folder}: {verdict.result}, which is no finding")
    return Row(
        command=shortened(run.command or ""),
        gpu=run.environment.gpu or "CPU",
        torch=run.environment.packages["torch"],
        eager_us=verdict.a_wall_us or 0.0,
        compiled_us=verdict.b_wall_us or 0.0,
        speedup=verdict.speedup,
        ci95=verdict.ci95,
        compile_seconds=facts.seconds,
        pays_after_calls=_pays_after(comparison),
        why=why,
        result=verdict.result,
        report=_report(folder.resolve().name),
    )


def read_cells(folder: Path) -> list[Row]:
    """A row of each work of a sweep that has its smallest batch, and cells with times."""
    works = [work for work in load_sweep(folder, calls=1000).works if work.settings]
    least = min((work.settings.batch_size for work in works if work.settings), default=1)
    rows = []
    for work in works:
        cells = [cell for cell in work.cells if cell.verdict and cell.verdict.speedup]
        if work.settings and work.settings.batch_size == least and cells:
            best = max(cells, key=lambda cell: cell.verdict.speedup if cell.verdict else 0.0)
            rows.append(replace(_cell_row(work, best), report=_report(f"sweep-{folder.resolve().name}")))
    return rows


def _report(name: str) -> str | None:
    """The committed report of that name."""
    place = f"reports/{name}.md"
    return place if (ROOT / place).is_file() else None


def _cell_row(work: Work, cell: CellFigures) -> Row:
    verdict, eager, compiled = cell.verdict, cell.eager, cell.compiled
    assert verdict and verdict.speedup and verdict.ci95 and eager and compiled and work.machine and work.torch
    even = cell.break_even
    return Row(
        command=_asked(cell.cell.request),
        gpu=work.machine,
        torch=work.torch,
        eager_us=eager.median_us,
        compiled_us=compiled.median_us,
        speedup=verdict.speedup,
        ci95=verdict.ci95,
        compile_seconds=cell.compile_seconds or 0.0,
        pays_after_calls=None if even is None else _calls(even),
        why=None,
        result=verdict.result,
    )


def _asked(request: Request) -> str:
    """What the cell was asked for beside what `tracekit profile` does of itself: `flux --scope all`."""
    info, plain = find(request.workload), Request(request.workload)
    usual = {"size": next(iter(info.sizes)), "scope": next(iter(info.scopes)), "iterations": request.iterations}
    usual |= GENERATING
    words = [request.workload]
    for name in (field.name for field in fields(Request)):
        value = getattr(request, name)
        if value in (getattr(plain, name), usual.get(name)):
            continue
        words += ["--", *value] if name == "options" else option_words(name, value)
    return shlex.join(words)


def _why(comparison: Comparison) -> str | None:
    """The sentence with the largest part of each share alone."""
    if comparison.reason is None:
        return None
    shares = tuple(replace(share, parts=share.parts[:1], rest_us=0.0) for share in comparison.reason.shares)
    sentence = reason_sentence(replace(comparison, reason=replace(comparison.reason, shares=shares)))
    # Of several processes: "Why in the recorded process: ...".
    return sentence.removeprefix("Why: ").removeprefix("Why ").rstrip(".") if sentence else None


def _pays_after(comparison: Comparison) -> float | None:
    """With no cache: of the run's own warm-up the later end, or of a fresh process where starts were measured apart."""
    first = next(iter(comparison.break_even), None)
    return None if first is None else _calls(first)


def _calls(even: BreakEven) -> float | None:
    if even.never:
        return None
    return even.calls if even.calls_at_most is None else even.calls_at_most


def shortened(command: str) -> str:
    """Of `tracekit profile flux --compiled --out X`: `flux`. What is asked for in another order is the same. Of a
    command with variables set for it everything: `NAME=value tracekit profile flux`."""
    variables, words = split_variables(command)
    given = profile.make_context("profile", words[2:]).params
    asked = _asked(Request(**{field.name: given[field.name] for field in fields(Request) if field.name in given}))
    return with_variables(f"tracekit profile {asked}", variables) if variables else asked


def _workload(command: str) -> str:
    """Whose row it is: of `NAME=value tracekit profile flux` that of flux."""
    return command.rpartition("tracekit profile ")[2].split()[0]


def line(row: Row) -> str:
    """The row as README has it."""
    never = "never" if row.result in ("faster", "slower") else "not known"
    pays = f"{math.ceil(row.pays_after_calls):,} calls" if row.pays_after_calls is not None else never
    low, high = row.ci95
    cells = (
        f"[`{row.command}`]({row.report})" if row.report else f"`{row.command}`",
        duration(row.eager_us),
        duration(row.compiled_us),
        f"{times(row.speedup)} ({low:.3f} to {high:.3f})",
        f"{row.compile_seconds:.0f} s",
        pays,
        row.why or ("not recorded" if row.result in ("faster", "slower") else f"{row.result}, not recorded"),
    )
    return "| " + " | ".join(cells) + " |\n"


def read_kept() -> list[Row]:
    """The rows, in README's order."""
    return [Row(**{**each, "ci95": tuple(each["ci95"])}) for each in json.loads(KEPT.read_text(encoding="utf-8"))]


def table(rows: list[Row]) -> str:
    """README's table of them."""
    return HEADER + "".join(map(line, rows))


def merged(kept: list[Row], found: list[Row]) -> list[Row]:
    """All rows, in the order that `tracekit workloads` has their workloads. What was found takes the place of what was
    kept, but a sweep's cell not that of a run."""
    rows = {row.command: row for row in kept}
    for row in found:
        before = rows.get(row.command)
        if before is None or row.why is not None or before.why is None:
            rows[row.command] = row
    order = {workload.name: place for place, workload in enumerate(all_workloads())}
    # What is not on that list comes after it.
    return sorted(rows.values(), key=lambda row: order.get(_workload(row.command), len(order)))


def main(folders: list[Path]) -> None:
    """Adds runs and sweeps to what is kept, and writes README's table anew."""
    found = [row for each in folders for row in (read_cells(each) if is_sweep(each) else [read_row(each)])]
    rows = merged(read_kept() if KEPT.exists() else [], found)
    KEPT.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    before, rest = README.read_text(encoding="utf-8").split(MARKS[0])
    README.write_text(before + MARKS[0] + table(rows) + MARKS[1] + rest.split(MARKS[1])[1], encoding="utf-8")


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
