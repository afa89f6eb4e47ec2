"""What `tracekit export` writes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from msgspec.structs import replace

from tracekit import store
from tracekit.analysis.listing import list_activities, list_idle
from tracekit.cli.output import check_apart, check_output_path, console_beside, say
from tracekit.errors import TracekitError
from tracekit.files import write_named
from tracekit.printing import echo, hand_over
from tracekit.reading.sides import choose_form, load_side, raise_if_damaged
from tracekit.reading.traces import Reading, parse_steps
from tracekit.tracefile.hta import export_for_hta
from tracekit.wings import load, together, together_of_run

if TYPE_CHECKING:
    from rich.console import Console

    from tracekit.model.comparison import Side
    from tracekit.model.run import FormName

#: A cell that begins so is run as a formula by spreadsheets, some of which take wide and small signs too, and skip what
#: is not seen.
FORMULA = r"^[\s\pC]*[=+\-@＝＋－＠﹦﹢﹣﹫−]|^[\t\r\n]"


def export_all(
    places: tuple[str, ...],
    hta: Path | None,
    kernels: str | None,
    gaps: str | None,
    groups: str | None,
    collectives: str | None,
    perfetto: Path | None,
    benchmark: str | None,
    form: FormName | None,
    window: str,
    steps: str | None,
    rank: int | None,
    no_cache: bool,
) -> None:
    """Every table, trace and figure that was asked for."""
    asked = {
        "--kernels": kernels,
        "--gaps": gaps,
        "--groups": groups,
        "--collectives": collectives,
        "--perfetto": None if perfetto is None else str(perfetto),
        "--benchmark": benchmark,
    }
    if hta is None and not any(asked.values()):
        raise TracekitError(f"nothing to export: pass --hta FOLDER or {', '.join(asked)} PATH")
    run_of_ranks = together_of_run(places) if perfetto is not None or collectives is not None else None
    of_one = [each for each in ("--kernels", "--gaps") if asked[each]]
    # Of each option its value, whether what it is for is asked for, and what that is.
    for option, value, is_used, purpose in (
        ("--form", form, bool(of_one or hta or run_of_ranks), "--kernels, --gaps, --hta and ranks"),
        ("--rank", rank, hta is not None, "--hta"),
        ("--window", None if window == "auto" else window, any(asked.values()), "tables"),
        ("--steps", steps, any(asked.values()), "tables"),
    ):
        if value is not None and not is_used:
            raise TracekitError(f"{option} applies only to {purpose}: leave it out")
    if perfetto is not None and "-" in asked.values():
        raise TracekitError("--perfetto says on standard output what it wrote: pass a file name for the table")
    # Of a run the variants beside each other are more than the ranks of one.
    asked_of_ranks = collectives is not None or (perfetto is not None and not (run_of_ranks and form is None))
    if asked_of_ranks and (of_ranks := run_of_ranks or together(places)):
        if hta is not None or set(filter(asked.get, asked)) - {"--collectives", "--perfetto"}:
            raise TracekitError("of ranks pass --collectives and --perfetto alone; the other options take one trace")
        load(of_ranks.export)(places, form, window, steps, not no_cache, collectives, perfetto)
        return
    if collectives is not None:
        raise TracekitError("--collectives takes the traces of several ranks: name their folder, or their files")
    trace, other = places[0], places[1] if len(places) > 1 else None
    if len(places) > 2:
        raise TracekitError(f"{places[2]} is one trace too many: leave it out")
    if other is not None and (hta is not None or of_one):
        raise TracekitError(f"{', '.join([*of_one, *(['--hta'] if hta else [])])} takes one trace: leave {other} out")
    for option, path in asked.items():
        check_output_path(option, path, trace, other)
    check_apart(asked)
    if list(asked.values()).count("-") > 1:
        raise TracekitError("standard output takes one table: pass file names for the others")
    console = console_beside("-" if "-" in asked.values() else None)
    if hta is not None:
        say(console, f"written: {export_for_hta(_light_of(trace, form), hta, rank=rank or 0)}")
    reading = Reading(window, parse_steps(steps), cached=not no_cache)
    if groups is not None or benchmark is not None:
        _export_sides(trace, other, reading, groups, benchmark, console)
    if perfetto is not None:
        from tracekit.cli.merged_trace import merge

        merge(Path(trace), Path(other) if other else None, None, None, reading, perfetto)
    if kernels is not None or gaps is not None:
        _export_one(trace, form, reading, kernels, gaps, console)


def _export_sides(
    a: str, b: str | None, reading: Reading, groups: str | None, benchmark: str | None, console: Console
) -> None:
    """What takes two sides, or all there is of a run."""
    from tracekit.comparison.comparing import compare
    from tracekit.reading.pairs import load_sides
    from tracekit.report.exports import GROUP_COLUMNS, benchmark_json, group_rows

    reading = replace(reading, shapes=True)
    forms = store.load(Path(a)).forms if b is None and store.is_run(Path(a)) else ()
    sides: list[Side]
    if len(forms) == 1 and groups is None:
        sides = [load_side(a, form=forms[0].name, reading=reading)]
    else:
        one, other, run = load_sides(a, b, (None, None), reading)
        sides = [one, other]
        if groups is not None:
            rows = group_rows(compare(one, other, run.order if run else ()))
            write_table(pl.DataFrame(rows, schema=GROUP_COLUMNS), groups, console)
    if benchmark is not None:
        _write(benchmark_json(sides), benchmark, console)
    raise_if_damaged(*sides)


def _export_one(
    place: str, form: FormName | None, reading: Reading, kernels: str | None, gaps: str | None, console: Console
) -> None:
    """Raises TracekitError, after writing what there is, when the trace could be read in part only."""
    trace = reading.read(_light_of(place, form))
    if not trace.activities.height:
        echo(f"note: {trace.path} has no GPU activity; the table is empty", err=True)
    if kernels is not None:
        write_table(list_activities(trace, window=reading.window, steps=reading.steps), kernels, console)
    if gaps is not None:
        write_table(list_idle(trace, window=reading.window, steps=reading.steps), gaps, console)
    if trace.truncated or trace.skipped:
        raise TracekitError(
            f"{trace.path} is damaged: the tables hold only what could be read. `tracekit analyze` lists the damage"
        )


def _light_of(place: str, form: FormName | None) -> str:
    """The trace itself; of a run folder the light recording of the form. Raises TracekitError where a trace is asked
    for a form."""
    if store.is_run(Path(place)) or store.is_cut_off(Path(place)):
        chosen = choose_form(store.load(Path(place)), Path(place), form)
        return str(store.recording_path(Path(place), chosen, "light"))
    if form is not None:
        raise TracekitError(f"{place} is not a run folder: leave --form out")
    return place


def write_table(rows: pl.DataFrame, path: str, console: Console) -> None:
    """As Parquet or CSV, by the path's ending."""
    if path.endswith(".parquet"):
        packed = io.BytesIO()
        rows.write_parquet(packed)
        _write(packed.getvalue(), path, console)
        return
    text = pl.col(pl.String)
    safe = pl.when(text.str.contains(FORMULA)).then(pl.lit("'") + text).otherwise(text)
    _write(rows.with_columns(safe.name.keep()).write_csv(float_precision=3), path, console)


def _write(content: str | bytes, path: str, console: Console) -> None:
    if path == "-" and isinstance(content, str):
        hand_over(content)
        return
    write_named(Path(path), content.encode() if isinstance(content, str) else content)
    say(console, f"written: {path}")
