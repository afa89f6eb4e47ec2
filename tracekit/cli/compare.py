"""`tracekit compare`: what changed from one side to the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracekit.cli.options import (
    FORMS,
    WIDE_HELP,
    OutputPath,
    with_cpu,
    with_detail,
    with_no_cache,
    with_rank,
    with_steps,
    with_window,
)
from tracekit.cli.output import (
    check_output_path,
    command_line,
    commands_of_page,
    console_beside,
    destination,
    publish,
    report_nothing_compiled,
    write_json,
)
from tracekit.errors import TracekitError
from tracekit.shell import joined

if TYPE_CHECKING:
    from tracekit.model.comparison import Comparison
    from tracekit.model.gate import Condition, Outcome
    from tracekit.model.run import FormName
    from tracekit.report.thirty_lines import Detail
    from tracekit.walks.pairs import Pair
    from tracekit.walks.reading import Reading

#: Options that ask something of two sides.
OF_TWO = ("form_a", "form_b", "ops", "gate", "inconclusive")
#: What a gate ends with.
GATE_EXITS: dict[Outcome, int] = {"pass": 0, "fail": 3, "inconclusive": 4}


def read_conditions(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Condition, ...]:
    """Those of all `--gate` together. What is no condition is a wrong value of the option: exit code 2."""
    if not values:
        return ()
    # Only for who asks for a gate.
    from tracekit.comparison.judging.gate import parse_conditions

    try:
        return tuple(condition for value in values for condition in parse_conditions(value))
    except TracekitError as error:
        raise click.BadParameter(str(error), ctx=context, param=parameter) from error


@click.command(epilog="Example: tracekit compare eager.json.gz compiled.json.gz", context_settings=WIDE_HELP)
@click.argument("a", metavar="A")
@click.argument("b", metavar="[B]", required=False)
@click.argument("more", metavar="[C]...", nargs=-1)
@click.option("--form-a", type=FORMS, help="Variant of run folder A (default: compiled, if recorded).")
@click.option("--form-b", type=FORMS, help="Variant of run folder B (default: compiled, if recorded).")
@with_window
@with_steps
@with_rank
@click.option(
    "--ops",
    metavar="TRACE",
    help="Trace or run folder of the same model compiled without CUDA graphs, to take operators from.",
)
@with_cpu
@click.option("--out", type=OutputPath(), help="Report to write: PATH.html, or a folder (default reports).")
@click.option("--force", is_flag=True, help="Replace an existing file that has the report's name.")
@click.option(
    "--gate",
    multiple=True,
    callback=read_conditions,
    metavar="CONDITION",
    help='Limit for B relative to A, like "wall<=+3%". Exit code 3: exceeded; 4: inconclusive (docs/gate.md).',
)
@click.option(
    "--inconclusive",
    type=click.Choice(("pass", "fail")),
    help="Treat an inconclusive gate as passed or failed.",
)
@click.option("--json", "json_path", metavar="PATH|-", help="Write the comparison as JSON; - is standard output.")
@click.option("--strict", is_flag=True, help="Exit with code 2, not 1, if a recording is damaged.")
@with_no_cache
@with_detail
@click.pass_context
def compare(
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
    """Compare A (before) with B (after), and write a report of what changed and why.

    Each is a trace file, its URL, - for standard input, or a run folder. Of a single run folder, eager and compiled are
    compared. Of three or more run folders, each compiled variant is compared with eager of the same run: tracekit
    compare traces/vit traces/vit-reduce-overhead traces/vit-max-autotune
    """
    if inconclusive and not gate:
        raise click.UsageError("--inconclusive needs a --gate: pass one, or leave --inconclusive out", ctx=context)
    for name in OF_TWO if more else ():
        if context.params[name]:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} needs exactly two sides: leave it out, or compare two runs", ctx=context)
    from tracekit.report.composition.detail import comparison_text
    from tracekit.report.composition.reports import comparison_report
    from tracekit.report.composition.summaries import interrupted_summary
    from tracekit.report.contract import analysis_json, comparison_json
    from tracekit.report.terminal import shown
    from tracekit.walks.pairs import name_sides, refuse_gate_of_ranks
    from tracekit.walks.reading import Reading, parse_steps
    from tracekit.walks.reports import command_to_repeat, identity_of_report_on
    from tracekit.walks.sides import interrupted_run, of_rank, raise_if_damaged, run_without_compiled

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
    pair = name_sides(a, b, (form_a, form_b))
    name = Path(a).resolve().name if pair.run else f"{pair.one.label}-vs-{pair.other.label}"
    there = destination(name, pair.identity, out, json_path, a, b, ops, force=force)
    interrupted = [run for run in map(interrupted_run, dict.fromkeys((a, b or a))) if run]
    if gate:
        refuse_gate_of_ranks(pair, gate)
    comparison = _compared(pair, ops, reading, gate, inconclusive, len(interrupted))
    console = console_beside(json_path)
    for run in interrupted:
        console.print(shown(interrupted_summary(run)))
    # Both sides as one trace; one of them where forms were chosen that `open` would not choose.
    together = not (form_a or form_b) and "-" not in (a, b)
    places = ([a, b] if b else [a]) if together else [comparison.b.path]
    repeat = command_to_repeat(Path(a), pair.run) if pair.run else ""
    open_it = joined(("tracekit", "open", *places))
    summary = comparison_text(comparison, there.page, open_it, detail, console.width, repeat)
    report = comparison_report(comparison, pair.run, commands_of_page(pair.run), repeat)
    publish(report, there, summary, console)
    write_json(comparison_json(comparison), json_path)
    raise_if_damaged(comparison.a, comparison.b, strict=strict)
    if comparison.gate is not None:
        context.exit(GATE_EXITS[comparison.gate.ends_as])


def _compared(
    pair: Pair,
    ops: str | None,
    reading: Reading,
    conditions: tuple[Condition, ...],
    taken_for: Outcome | None,
    interrupted: int,
) -> Comparison:
    """What changed, with the gate's outcome where there are conditions."""
    from msgspec.structs import replace

    from tracekit.comparison.comparing import compare as compare_sides
    from tracekit.comparison.judging.alternatives import with_verified
    from tracekit.comparison.judging.gate import check
    from tracekit.walks.pairs import load_job, load_pair, refuse_to_gate, with_interrupts, with_operators_of

    job = load_job(pair, reading)
    one, other = load_pair(pair, reading, job)
    run = pair.run
    if ops is not None:
        one, other = with_operators_of(ops, one, other, reading)
    order = run.order if run and one.label != other.label else ()
    comparison = with_interrupts(compare_sides(one, other, order, job), interrupted)
    comparison = with_verified(comparison, run.verified if run else None)
    if not conditions:
        return comparison
    refuse_to_gate(comparison.a, comparison.b)
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
    from tracekit import store
    from tracekit.report.composition.detail import comparisons_text
    from tracekit.report.composition.reports import comparisons_report
    from tracekit.report.contract import comparisons_json
    from tracekit.walks.pairs import load_comparisons, refuse_unpaired_runs
    from tracekit.walks.reports import identity_of_report, identity_of_run
    from tracekit.walks.sides import raise_if_damaged

    refuse_unpaired_runs(places)
    identity = identity_of_report("several", [identity_of_run(store.load(Path(place))) for place in places])
    name = f"{Path(places[0]).resolve().name}-and-{len(places) - 1}-more"
    there = destination(name, identity, out, json_path, *places, force=force)
    comparisons = load_comparisons(places, reading)
    # The run to look at next: the fastest one's, else the first.
    best = comparisons.paths[comparisons.leader or 0]
    summary = comparisons_text(comparisons, there.page, joined(("tracekit", "compare", best)), detail)
    publish(comparisons_report(comparisons, command_line()), there, summary, console_beside(json_path))
    write_json(comparisons_json(comparisons), json_path)
    raise_if_damaged(*comparisons.sides, strict=strict)
