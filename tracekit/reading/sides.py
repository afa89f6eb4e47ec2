"""What a user names, a run folder or a trace file, as a side of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracekit import store
from tracekit.analysis import holds_window
from tracekit.analysis.regions import with_break_costs
from tracekit.analysis.unprofiled_idle import Host, estimate_idle, estimate_recorded_idle, rules_of
from tracekit.errors import StrictError, TracekitError
from tracekit.model.comparison import BUSY_MOVES, Side
from tracekit.names import encodable
from tracekit.reading.model_code import read_model_code
from tracekit.reading.traces import Reading
from tracekit.shell import quoted
from tracekit.tracefile.source import raise_if_absent, trace_of_rank, traces_in
from tracekit.wings import load, over_ranks, wings

if TYPE_CHECKING:
    from collections.abc import Sequence as PySequence

    from tracekit.model.analysis import Analysis
    from tracekit.model.comparison import Comparison
    from tracekit.model.job import Job
    from tracekit.model.recording_cost import RecordingCost
    from tracekit.model.run import FormName, FormResult, RankOfRun, RecordingKind, Run
    from tracekit.model.sequence import OperatorSource, Sequence
    from tracekit.model.timeline import StepTimeline
    from tracekit.model.trace import Trace
    from tracekit.reading.traces import Looked

#: What a run is compared of.
BOTH: tuple[FormName, FormName] = ("eager", "compiled")
#: All that a command without options reads.
WHOLE_READING = Reading()


def load_side(
    place: Path | str, *, form: FormName | None = None, reading: Reading = WHOLE_READING, rank: RankOfRun | None = None
) -> Side:
    """The side that `place` names: a trace file or its URL, `-`, or one form of a run folder (see `choose_form`), of
    several ranks that one's, else the first's.

    The label is the form's name for a run, the file's name for a file. Raises TracekitError for whatever keeps it from
    being read.
    """
    path = Path(place)
    if not is_run_folder(place):
        refuse_place_of_wing(place)
        if form is not None:
            raise_if_absent(str(place))
            raise TracekitError(f"{place} is a trace file, not a run folder: leave --form out")
        trace = reading.read(place)
        analysis, sequence, timeline = reading.look(trace)
        side = Side(file_label(path), str(place), analysis, None, None, None, sequence=sequence, timeline=timeline)
        # What Python stacks add nobody knows.
        if side.reads_calls and not side.has_stacks:
            estimate = estimate_recorded_idle(trace, side.idle_by_cause(), reading.window, reading.steps)
            side = replace(side, recorded_idle_estimate=estimate)
        return side
    run = store.load(path)
    ranks = run.ranks
    if rank is not None and rank.folder is not None:
        path = store.rank_folder(path, rank)
        run = store.load(path)
    chosen = choose_form(run, path, form)
    light_trace, rich_trace = reading.read(store.recording_path(path, chosen, "light")), None
    if _has_recording(chosen, "rich"):
        rich_trace = reading.read(store.recording_path(path, chosen, "rich"))
    looked = _analyze_recordings(light_trace, rich_trace, reading)
    kind, (analysis, sequence, timeline), (rich, rich_timeline) = looked
    provenance = store.load_provenance(path, chosen) if reading.shapes else None
    side = _with_break_costs(
        Side(
            label=chosen.name,
            path=str(store.recording_path(path, chosen, kind)),
            analysis=analysis,
            form=chosen,
            settings=run.settings,
            environment=run.environment,
            rich=rich,
            sequence=sequence,
            provenance=provenance,
            components=run.components,
            repeated_parts=run.repeated_parts,
            timeline=timeline,
            rich_timeline=rich_timeline,
            pictures=store.load_pictures(path, chosen) if reading.shapes else (),
            kernel_sources=store.load_kernel_sources(path, chosen) if reading.shapes else None,
            code=read_model_code(run, provenance),
            ranks=ranks,
            rank=(rank.rank if rank else 0) if ranks else None,
        )
    )
    return _with_idle_estimate(side, light_trace, rich_trace, run.recording_cost) if kind == "light" else side


def _with_idle_estimate(side: Side, light: Trace, rich: Trace | None, cost: RecordingCost | None) -> Side:
    if side.unprofiled_idle_us is None:
        return side
    busy_differs_us = BUSY_MOVES * (side.busy_us or 0.0) if side.busy_differs_us is None else side.busy_differs_us
    doubt_us = busy_differs_us + (side.form.calls_differ_us if side.form else 0.0)
    timed, collecting = (side.form.host, side.form.collecting) if side.form else (None, None)
    of_steps = {each.kind: each for each in side.form.recordings} if side.form else {}
    host, light_steps = None, of_steps.get("light")
    if timed and light_steps and light_steps.host_us:
        told_us = of_steps["rich"].host_us if "rich" in of_steps else ()
        host = Host(timed, light_steps.host_us, told_us, light_steps.off_cpu_us)
    estimate = estimate_idle(light, rich, rules_of(cost, timed), doubt_us, host, collecting)
    if estimate is None:
        return side
    estimate = replace(estimate, cost_measured=cost is not None).within(side.unprofiled_idle_us, doubt_us)
    return replace(side, idle_estimate=estimate)


def compare_forms(folder: Path, run: Run, *, cached: bool = True) -> Comparison:
    """What came of compiling, in a run that has both forms, with its verified advice."""
    from tracekit.comparison.comparing import compare
    from tracekit.comparison.judging.alternatives import with_verified

    reading = Reading(shapes=True, cached=cached)
    job = compare_job((folder, run, "eager"), (folder, run, "compiled"), reading) if run.ranks else None
    rank = slowest_rank(run, job)
    eager, compiled = (load_side(folder, form=name, reading=reading, rank=rank) for name in BOTH)
    return with_verified(compare(eager, compiled, run.order, job), run.verified)


def compare_job(a: tuple[Path, Run, FormName], b: tuple[Path, Run, FormName], reading: Reading) -> Job | None:
    """What changed over all ranks from one form of a run to another, or to another run's; None where no wing compares
    jobs. Raises TracekitError where a rank's recording cannot be read."""
    known = over_ranks()
    job: Job | None = load(known.compare)(a, b, reading) if known else None
    return job


def slowest_rank(run: Run, job: Job | None) -> RankOfRun | None:
    """The rank that a comparison of the run is of; None of a run of one process."""
    return next((each for each in run.ranks if job is not None and each.rank == job.slowest), None)


def _with_break_costs(side: Side) -> Side:
    """The side, whose recording says what each graph break costs, where torch told of any."""
    form, found, shown = side.form, side.diagnostics, side.entering
    if form is None or form.compilation is None or found is None or shown is None or shown.regions is None:
        return side
    costed = with_break_costs(found, shown.regions, max(shown.window.steps, 1))
    return replace(side, form=replace(form, compilation=replace(form.compilation, diagnostics=costed)))


def borrow_operators(side: Side, lender: Sequence) -> Side:
    """The side with the operators of another trace of the same model, where it lacks its own (CUDA graphs)."""
    return replace(side, sequence=_lent(side.sequence, lender, "lent")) if side.sequence else side


def _placed(timeline: StepTimeline, own: Sequence, others: Sequence) -> StepTimeline:
    """The timeline, whose positions are places in a recording's own sequence, with those in another of the same work;
    -1 where the other has nothing like it."""
    from tracekit.comparison.matching.common_subsequence import places_in_table

    names, table = ([each.name for each in side.activities] for side in (own, others))
    places = places_in_table(names, table, max(round(len(names) / max(len(table), 1)), 1))
    found = (places[at] for at in timeline.positions)
    return replace(timeline, positions=tuple(-1 if each is None else each for each in found))


def _lent(sequence: Sequence, lender: Sequence, source: OperatorSource) -> Sequence:
    from tracekit.comparison.matching.cells import lacks_operators, lend_operators

    return lend_operators(sequence, lender, source) if lacks_operators(sequence) else sequence


def is_run_folder(place: Path | str) -> bool:
    """Whether the place is one of tracekit's, or a folder that holds no trace itself and so was meant to be one."""
    path = Path(place)
    if not str(place):
        return False
    if store.is_run(path) or store.is_cut_off(path) or store.was_interrupted(path):
        return True
    return path.is_dir() and not traces_in(path)


def of_rank(places: PySequence[str], rank: int | None) -> tuple[str, ...]:
    """The places, with that rank's trace for each folder that holds traces. Raises TracekitError where `rank` is given
    and there is no such folder, or none of its traces, or several, are of that rank."""
    if rank is None:
        return tuple(places)
    folders = {place for place in places if place and Path(place).is_dir() and not is_run_folder(place)}
    if not folders:
        raise TracekitError(f"--rank {rank} chooses a trace in a folder of many ranks' traces: name that folder")
    return tuple(str(trace_of_rank(Path(place), rank)) if place in folders else place for place in places)


def refuse_place_of_wing(place: Path | str) -> None:
    """Raises TracekitError where the place is a folder of a wing's that holds no traces."""
    path = Path(place)
    if not str(place) or not path.is_dir():
        return
    # Not for every trace file: what knows a wing's folders takes a tenth of a comparison's start.
    for wing in wings():
        if wing.why_no_traces and (why := load(wing.why_no_traces)(str(place))):
            raise TracekitError(why)


def interrupted_run(place: Path | str) -> Run | None:
    """The run in this folder if it was never finished."""
    path = Path(place)
    if not str(place) or not store.is_run(path):
        return None
    run = store.load(path)
    return run if run.status == "incomplete" else None


def run_without_compiled(place: Path | str) -> Run | None:
    """The run in this folder if it was to have a compiled form, and torch.compile compiled nothing."""
    run = store.load(Path(place)) if is_run_folder(place) else None
    return run if run is not None and run.not_compiled is not None and run.form("compiled") is None else None


def choose_form(run: Run, folder: Path, form: FormName | None) -> FormResult:
    """The form that was asked for; if none was, the compiled one where there is one, else the eager one."""
    names = [form] if form else ["compiled", "eager"]
    there_are = [each for name in names for each in run.forms if each.name == name]
    # Of an interrupted run the form that has a recording comes first.
    found = next((each for each in there_are if _has_recording(each, "light")), next(iter(there_are), None))
    if found is None and run.not_compiled is not None:
        says = f"`tracekit compare {quoted(str(folder))}` shows why"
        raise TracekitError(f"{folder} has no {form or 'recorded'} variant: torch.compile compiled nothing; {says}")
    if found is None:
        there = " and ".join(each.name for each in run.forms) or "nothing"
        in_program = run.settings.in_program
        both = "tracekit.profile without compile=False" if in_program else "`tracekit profile ... --compiled`"
        raise TracekitError(f"{folder} has no {form or 'recorded'} variant, only {there}; {both} records both")
    return found


def _has_recording(form: FormResult, kind: RecordingKind) -> bool:
    return any(recording.kind == kind for recording in form.recordings)


def _analyze_recordings(
    light: Trace, rich: Trace | None, reading: Reading
) -> tuple[RecordingKind, Looked, tuple[Analysis | None, StepTimeline | None]]:
    """Which recording the figures are of; what was seen of it, with the operators of the rich one; and the rich one's
    analysis beside that, with one step to draw.

    The figures are the light one's, unless it holds no span of the window's name: a light recording of a GPU holds
    those of its steps alone. They are the rich one's then.
    """
    if rich is None:
        return "light", reading.look(light), (None, None)
    if not holds_window(light, reading.window):
        return "rich", reading.look(rich), (None, None)
    # What is asked for by number or name the rich recording may not have: it has fewer steps, each like the others.
    window = reading.window if holds_window(rich, reading.window) else "auto"
    beside = replace(reading, steps=None, window=window)
    analysis, sequence, timeline = reading.look(light)
    rich_analysis, lender, drawn = beside.look(rich)
    if sequence is None or lender is None:
        return "light", (analysis, sequence, timeline), (rich_analysis, None)
    placed = _placed(drawn, lender, sequence) if drawn else None
    return "light", (analysis, _lent(sequence, lender, "rich"), timeline), (rich_analysis, placed)


def file_label(path: Path) -> str:
    """A trace file's name without its endings, as text."""
    name = encodable(path.name)
    for ending in (".gz", ".zst", ".zstd", ".json", ".pt.trace", ".trace"):
        name = name.removesuffix(ending)
    return name or encodable(path.name)


def raise_if_damaged(*sides: Side, strict: bool = False) -> None:
    """Ends a command with an error, after its output, when a trace could be read in part only: nothing is lost, and no
    script takes the figures for whole ones."""
    for side in sides:
        damage = next((finding for finding in side.health if finding.severity == "error"), None)
        if damage is not None:
            kind = StrictError if strict else TracekitError
            # The rich recording's damage is said to be its own.
            place = side.analysis.trace.path if damage in side.analysis.health else Path(side.path).parent
            raise kind(f"{place} is damaged: {damage.long()}; copy or record it again")
