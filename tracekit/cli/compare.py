"""`tracekit compare`: what changed from one side to the other."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracekit.cli.conditions import read_conditions
from tracekit.cli.place import Place

if TYPE_CHECKING:
    from tracekit.model.comparison import Comparison, Side
    from tracekit.model.gate import Condition, Outcome
    from tracekit.model.run import FormName, Run
    from tracekit.walks.reading import Reading

#: What a gate ends with.
GATE_EXITS: dict[Outcome, int] = {"pass": 0, "fail": 3, "inconclusive": 4}
FORMS = click.Choice(("eager", "compiled"))


@click.command(
    epilog="Example: tracekit compare eager.json.gz compiled.json.gz",
    context_settings={"max_content_width": 110},
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="[B]", required=False)
@click.argument("more", metavar="[C]...", nargs=-1)
@click.option("--form-a", type=FORMS, help="Of a run folder A; compiled if it has that.")
@click.option("--form-b", type=FORMS, help="Of a run folder B; compiled if it has that.")
@click.option(
    "--window",
    default="auto",
    metavar="steps|whole|NAME",
    help="What is counted: the marked steps, all of it, or spans by name or regular expression.",
)
@click.option("--steps", metavar="N|N-M", help="Only the marked steps with these numbers.")
@click.option(
    "--ops",
    metavar="TRACE",
    help="A trace or run folder of the same model compiled without CUDA graphs, which lends its operators.",
)
@click.option("--cpu", is_flag=True, help="Look at host operators where a trace has no GPU activity.")
@click.option("--out", type=Place(), help="The report: PATH.html, or a folder for it; reports if not given.")
@click.option(
    "--gate",
    multiple=True,
    callback=read_conditions,
    metavar="CONDITION",
    help='What B must keep to, like "wall<=+3%"; exit code 3 if it does not, 4 if that cannot be told (docs/gate.md).',
)
@click.option(
    "--inconclusive",
    type=click.Choice(("pass", "fail")),
    help="End with the exit code of this if a gate cannot be decided.",
)
@click.option("--json", "json_path", metavar="PATH|-", help="Write the comparison as JSON; - is standard output.")
@click.option("--strict", is_flag=True, help="End with exit code 2, not 1, if a recording is damaged.")
@click.option("--no-cache", is_flag=True, help="Read the files anew, and keep nothing of them.")
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
    ops: str | None,
    cpu: bool,
    out: Path | None,
    gate: tuple[Condition, ...],
    inconclusive: Outcome | None,
    json_path: str | None,
    no_cache: bool,
    strict: bool,
) -> None:
    """Say what changed from A (before) to B (after), and write a report.

    Each is a trace file, its URL, - for standard input, or a run folder. A run folder alone is compared with itself:
    eager with compiled. Three or more run folders stand side by side, each compiled form beside the eager one of its
    own process: tracekit compare traces/vit traces/vit-reduce-overhead traces/vit-max-autotune
    """
    if more:
        from tracekit.cli.comparing_several import compare_several

        refuse_options_of_two(context)
        places = (a, b or a, *more)
        compare_several(places, window, steps, out, json_path, cpu=cpu, cached=not no_cache, strict=strict)
        return
    from dataclasses import replace

    from tracekit.cli.output import check_output_path, command_line, console_beside, say, write_json
    from tracekit.comparison import compare as compare_sides
    from tracekit.comparison.advice import with_verified
    from tracekit.comparison.gate import check
    from tracekit.report.contract import comparison_json
    from tracekit.report.terminal import comparison_summary, interrupted_summary
    from tracekit.walks.reading import Reading, parse_steps
    from tracekit.walks.reports import place_of_report, refuse_other_report
    from tracekit.walks.sides import interrupted_run, raise_if_damaged, write_report

    check_output_path("--json", json_path, a, b, ops)
    reading = Reading(window, parse_steps(steps), cpu, cached=not no_cache, shapes=True)
    one, other, run = load_sides(a, b, (form_a, form_b), reading)
    if ops is not None:
        one, other = _with_operators_of(ops, one, other, reading)
    order = run.order if run and one.label != other.label else ()
    interrupted = [run for run in map(interrupted_run, {a, b or a}) if run]
    comparison = _with_interrupts(compare_sides(one, other, order), len(interrupted))
    comparison = with_verified(comparison, run.verified if run else None)
    comparison = replace(comparison, gate=check(comparison, gate, inconclusive)) if gate else comparison
    folder, name = place_of_report(out, Path(a).resolve().name if run else f"{one.label}-vs-{other.label}")
    if run and out is None:
        refuse_other_report(run, folder, name)
    written = write_report(comparison, run, command_line(), folder, name)
    console = console_beside(json_path)
    for each in interrupted:
        console.print(interrupted_summary(each))
    console.print(comparison_summary(comparison, _next_commands(a, b, one, other, as_is=not (form_a or form_b))))
    for path in written:
        say(console, f"written: {path}")
    write_json(comparison_json(comparison), json_path)
    raise_if_damaged(one, other, strict=strict)
    if comparison.gate is not None:
        context.exit(GATE_EXITS[comparison.gate.ends_as])


#: Options that ask something of two sides.
OF_TWO = {
    "form_a": "--form-a",
    "form_b": "--form-b",
    "ops": "--ops",
    "gate": "--gate",
    "inconclusive": "--inconclusive",
}


def refuse_options_of_two(context: click.Context) -> None:
    """Raises UsageError where one of them is given beside three or more runs."""
    for name, option in OF_TWO.items():
        if context.params[name]:
            raise click.UsageError(f"{option} is for two sides, not for three or more", ctx=context)


def _next_commands(a: str, b: str | None, one: Side, other: Side, *, as_is: bool) -> tuple[str, ...]:
    """What shows both sides as one trace; one by one where forms were chosen that `open` would not choose."""
    if as_is and "-" not in (a, b):
        return (shlex.join(("tracekit", "open", a, *((b,) if b else ()))),)
    return f"tracekit open {one.path}", f"tracekit open {other.path}"


def _with_interrupts(comparison: Comparison, runs: int) -> Comparison:
    """The report is read without the terminal: it says too that a run is not whole."""
    from dataclasses import replace

    if not runs:
        return comparison
    which = "A run of this comparison" if runs == 1 else "Both runs of this comparison"
    warning = f"{which} was interrupted and is not whole: calls or recordings are missing."
    return replace(comparison, warnings=(warning, *comparison.warnings))


def load_sides(
    a: str, b: str | None, forms: tuple[FormName | None, FormName | None], reading: Reading
) -> tuple[Side, Side, Run | None]:
    """Both sides, told apart by their labels; and the run, when both are of one."""
    from dataclasses import replace

    from tracekit import store
    from tracekit.errors import TracekitError
    from tracekit.tracefile.source import raise_if_absent
    from tracekit.walks.sides import is_run_folder, load_side

    if b is None and not is_run_folder(a):
        raise_if_absent(a)
        raise TracekitError(f"{a} is one trace: name a second one to compare it with")
    b = b or a
    if is_run_folder(a) and is_run_folder(b) and Path(a).resolve() == Path(b).resolve():
        one = load_side(a, form=forms[0] or "eager", reading=reading)
        other = load_side(b, form=forms[1] or "compiled", reading=reading)
        return one, other, store.load(Path(a))
    one, other = (load_side(place, form=form, reading=reading) for place, form in zip((a, b), forms, strict=True))
    labels = [_label(side, place) for side, place in ((one, a), (other, b))]
    if labels[0] == labels[1]:
        labels = [f"{Path(place).resolve().parent.name}-{label}" for place, label in zip((a, b), labels, strict=True)]
    return replace(one, label=labels[0]), replace(other, label=labels[1]), None


def _with_operators_of(place: str, one: Side, other: Side, reading: Reading) -> tuple[Side, Side]:
    """Both sides, with the operators of the trace at `place` where they lack their own."""
    from tracekit.comparison.matching import lacks_operators
    from tracekit.comparison.misfit import find_misfit
    from tracekit.errors import TracekitError
    from tracekit.walks.sides import borrow_operators, load_side

    side = load_side(place, reading=reading)
    lender = side.sequence
    if lender is None or lender.operators == "none":
        raise TracekitError(f"{place} holds no operators to lend: record it with ProfilerActivity.CPU and shapes")
    borrowed = borrow_operators(one, lender), borrow_operators(other, lender)
    for side in borrowed:
        if side.sequence and lacks_operators(side.sequence):
            raise TracekitError(
                f"{place} lends operators to few of {side.label}'s kernels: it is of another model, size or compilation"
            )
    for borrower, beside in ((one, other), (other, one)):
        if borrower.sequence and lacks_operators(borrower.sequence) and (why := find_misfit(side, borrower, beside)):
            raise TracekitError(f"{place} lends {borrower.label} no operators: {why}; pass one of the same sizes")
    return borrowed


def _label(side: Side, place: str) -> str:
    if side.form is None:
        return side.label
    run = Path(place).resolve().name
    return run if run.endswith(f"-{side.form.name}") else f"{run} {side.form.name}"
