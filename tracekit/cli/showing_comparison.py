"""What `tracekit compare` reads, shows and writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from tracekit import store
from tracekit.cli.output import check_output_path, command_of_report, console_beside, write_json
from tracekit.cli.publishing import commands_of_page, destination, publish, report_nothing_compiled
from tracekit.comparison.comparing import compare as compare_sides
from tracekit.comparison.judging.alternatives import with_verified
from tracekit.comparison.judging.gate import check
from tracekit.errors import TracekitError
from tracekit.reading import pairs
from tracekit.reading.reports import command_to_repeat, identity_of_report, identity_of_report_on, identity_of_run
from tracekit.reading.sides import interrupted_run, of_rank, raise_if_damaged, run_without_compiled
from tracekit.reading.traces import Reading, parse_steps
from tracekit.report.composition.one_side import interrupted_summary
from tracekit.report.composition.reports import comparison_report, comparisons_report
from tracekit.report.contract import analysis_json, comparison_json, comparisons_json
from tracekit.report.terminal import shown
from tracekit.shell import joined

if TYPE_CHECKING:
    from tracekit.model.comparison import Comparison
    from tracekit.model.gate import Condition, Outcome
    from tracekit.model.run import FormName
    from tracekit.report.thirty_lines import Detail

#: Options that ask something of two sides.
OF_TWO = ("form_a", "form_b", "ops", "gate", "inconclusive")
#: What a gate ends with.
GATE_EXITS: dict[Outcome, int] = {"pass": 0, "fail": 3, "inconclusive": 4}


def show_comparison(
    context: click.Context,
    /,
    a: str,
    b: str | None,
    more: tuple[str, ...],
    form_a: FormName | None,
    form_b: FormName | None,
    window: str,
    steps: str | None,
    rank: int | None,
    ops: str | None,
    cpu: bool,
    out: Path | None,
    force: bool,
    gate: tuple[Condition, ...],
    inconclusive: Outcome | None,
    json_path: str | None,
    no_cache: bool,
    strict: bool,
    detail: Detail,
) -> None:
    """Of two sides, or of several runs; raises what ends the command."""
    if inconclusive and not gate:
        raise click.UsageError("--inconclusive needs a --gate: pass one, or leave --inconclusive out", ctx=context)
    for name in OF_TWO if more else ():
        if context.params[name]:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} needs exactly two sides: leave it out, or compare two runs", ctx=context)

    a, *others = of_rank((a, *((b,) if b else ()), *more), rank)
    b, more = (others[0], tuple(others[1:])) if b else (b, more)
    check_output_path("--json", json_path, a, b, ops, *more)
    reading = Reading(window, parse_steps(steps), cpu, cached=not no_cache, shapes=True)
    if more:
        compare_several((a, b or a, *more), reading, out, json_path, detail, force=force, strict=strict)
        return
    run = run_without_compiled(a) if b is None and not (form_a or form_b) else None
    if run is not None:
        if gate:
            raise TracekitError(f"torch.compile compiled nothing in {a}: --gate has no change to check")
        there = destination(Path(a).resolve().name, identity_of_report_on(run), out, json_path, a, force=force)
        command, console = commands_of_page(run), console_beside(json_path)
        if run.status == "incomplete":
            console.print(shown(interrupted_summary(run)))
        single = report_nothing_compiled(Path(a), run, reading, there, command, console, detail)
        write_json(analysis_json(single), json_path)
        raise_if_damaged(single.side, strict=strict)
        return
    pair = pairs.name_sides(a, b, (form_a, form_b))
    name = Path(a).resolve().name if pair.run else f"{pair.one.label}-vs-{pair.other.label}"
    there = destination(name, pair.identity, out, json_path, a, b, ops, force=force)
    interrupted = [run for run in map(interrupted_run, dict.fromkeys((a, b or a))) if run]
    if gate:
        pairs.refuse_gate_of_ranks(pair, gate)
    comparison = _compared(pair, ops, reading, gate, inconclusive, len(interrupted))
    console = console_beside(json_path)
    for run in interrupted:
        console.print(shown(interrupted_summary(run)))
    # Both sides as one trace; one of them where forms were chosen that `open` would not choose.
    together = not (form_a or form_b) and "-" not in (a, b)
    places = ([a, b] if b else [a]) if together else [comparison.b.path]
    repeat = command_to_repeat(Path(a), pair.run) if pair.run else ""
    open_it = joined(("tracekit", "open", *places))
    report = comparison_report(comparison, pair.run, commands_of_page(pair.run), repeat)
    publish(report, there, console, detail, f"Timeline: {open_it}")
    write_json(comparison_json(comparison), json_path)
    raise_if_damaged(comparison.a, comparison.b, strict=strict)
    if comparison.gate is not None:
        context.exit(GATE_EXITS[comparison.gate.ends_as])


def _compared(
    pair: pairs.Pair,
    ops: str | None,
    reading: Reading,
    conditions: tuple[Condition, ...],
    taken_for: Outcome | None,
    interrupted: int,
) -> Comparison:
    """What changed, with the gate's outcome where there are conditions."""
    job = pairs.load_job(pair, reading)
    one, other = pairs.load_pair(pair, reading, job)
    run = pair.run
    if ops is not None:
        one, other = pairs.with_operators_of(ops, one, other, reading)
    order = run.order if run and one.label != other.label else ()
    comparison = pairs.with_interrupts(compare_sides(one, other, order, job), interrupted)
    comparison = with_verified(comparison, run.verified if run else None)
    if not conditions:
        return comparison
    pairs.refuse_to_gate(comparison.a, comparison.b)
    return replace(comparison, gate=check(comparison, conditions, taken_for))


def compare_several(
    places: tuple[str, ...],
    reading: Reading,
    out: Path | None,
    json_path: str | None,
    detail: Detail,
    *,
    force: bool,
    strict: bool,
) -> None:
    """Shows the runs side by side, writes page, markdown and JSON."""
    pairs.refuse_unpaired_runs(places)
    identity = identity_of_report("several", [identity_of_run(store.load(Path(place))) for place in places])
    name = f"{Path(places[0]).resolve().name}-and-{len(places) - 1}-more"
    there = destination(name, identity, out, json_path, *places, force=force)
    comparisons = pairs.load_comparisons(places, reading)
    # The run to look at next: the fastest one's, else the first.
    best = comparisons.paths[comparisons.leader or 0]
    look_at = joined(("tracekit", "compare", best))
    publish(comparisons_report(comparisons, command_of_report()), there, console_beside(json_path), detail, look_at)
    write_json(comparisons_json(comparisons), json_path)
    raise_if_damaged(*comparisons.sides, strict=strict)
