"""README's table of findings, from the runs themselves: `python -m docs.making.measured RUN...`.

What each run says is kept in `docs/measured.json`, for not every run is committed, and the table between README's two
marks is written anew from that. A row is known by its command: a run with the same one takes its place.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tracekit import store
from tracekit.comparison import compare
from tracekit.model.comparison import Comparison
from tracekit.numbers import duration, times
from tracekit.report.sections.reason import reason_sentence
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "measured.json"
README = ROOT / "README.md"
MARKS = ("<!-- measured: python -m docs.making.measured -->\n", "<!-- /measured -->")
HEADER = (
    "| `tracekit profile` | eager | compiled | speed-up (95 % interval) | compiling | pays after, at most | why |\n"
    "|---|--:|--:|--:|--:|--:|---|\n"
)
#: What every row has, or what says nothing of what was measured.
LEFT_OUT = ("--compiled", "--no-provenance", "--no-numerics", "--startup", "--verify-advice", "--force")
LEFT_OUT_WITH_VALUE = ("--out", "--time-budget")


@dataclass(frozen=True, slots=True)
class Row:
    """One run. `pays_after_calls` is None where compiling never pays, `why` the waterfall in a sentence."""

    command: str
    gpu: str
    torch: str
    eager_us: float
    compiled_us: float
    speedup: float
    ci95: tuple[float, float]
    compile_seconds: float
    pays_after_calls: float | None
    why: str


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
    )


def _why(comparison: Comparison) -> str | None:
    """The sentence with the largest part of each share alone."""
    if comparison.reason is None:
        return None
    shares = tuple(replace(share, parts=share.parts[:1], rest_us=0.0) for share in comparison.reason.shares)
    sentence = reason_sentence(replace(comparison, reason=replace(comparison.reason, shares=shares)))
    return sentence.removeprefix("Why: ").rstrip(".") if sentence else None


def _pays_after(comparison: Comparison) -> float | None:
    """With no cache: of the run's own warm-up the later end, or of a fresh process where starts were measured apart."""
    first = next(iter(comparison.break_even), None)
    if first is None or first.never:
        return None
    return first.calls if first.calls_at_most is None else first.calls_at_most


def shortened(command: str) -> str:
    """Of `tracekit profile flux --compiled --out X`: `flux`."""
    words = command.split()[2:]
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or word in LEFT_OUT:
            skip = False
        elif word in LEFT_OUT_WITH_VALUE:
            skip = True
        else:
            kept.append(word)
    return " ".join(kept)


def line(row: Row) -> str:
    """The row as README has it."""
    pays = f"{math.ceil(row.pays_after_calls):,} calls" if row.pays_after_calls is not None else "never"
    low, high = row.ci95
    cells = (
        f"`{row.command}`",
        duration(row.eager_us),
        duration(row.compiled_us),
        f"{times(row.speedup)} ({low:.3f} to {high:.3f})",
        f"{row.compile_seconds:.0f} s",
        pays,
        row.why,
    )
    return "| " + " | ".join(cells) + " |\n"


def read_kept() -> list[Row]:
    """The rows, in README's order."""
    return [Row(**{**each, "ci95": tuple(each["ci95"])}) for each in json.loads(KEPT.read_text(encoding="utf-8"))]


def table(rows: list[Row]) -> str:
    """README's table of them."""
    return HEADER + "".join(map(line, rows))


def main(folders: list[Path]) -> None:
    """Adds the runs to what is kept, and writes README's table anew."""
    rows = {row.command: row for row in read_kept()} if KEPT.exists() else {}
    rows.update({row.command: row for row in map(read_row, folders)})
    KEPT.write_text(json.dumps([asdict(row) for row in rows.values()], indent=1) + "\n", encoding="utf-8")
    before, rest = README.read_text(encoding="utf-8").split(MARKS[0])
    README.write_text(
        before + MARKS[0] + table(list(rows.values())) + MARKS[1] + rest.split(MARKS[1])[1], encoding="utf-8"
    )


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
