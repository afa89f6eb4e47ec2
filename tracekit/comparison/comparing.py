"""From two sides to a comparison, one question after the other."""

from msgspec.structs import replace

from tracekit.comparison.cost.bound import find_bound
from tracekit.comparison.cost.operator_calls import note_calls
from tracekit.comparison.findings import find_all
from tracekit.comparison.judging.accuracy import judge_accuracy
from tracekit.comparison.judging.break_even import find_break_even
from tracekit.comparison.judging.estimates import find_separate_runs_change
from tracekit.comparison.judging.fairness import find_fallbacks, find_unfairness
from tracekit.comparison.judging.rank_differences import with_worst_rank
from tracekit.comparison.judging.verdict import judge
from tracekit.comparison.matching import coverage
from tracekit.comparison.matching.cells import find_cells, why_no_provenance, with_as_many_steps
from tracekit.comparison.matching.groups import group_kernels
from tracekit.comparison.modules import time_by_module
from tracekit.comparison.waiting import with_waiting_lines
from tracekit.comparison.waterfall import build_waterfall, find_reason
from tracekit.model.comparison import Comparison, Deltas, Side, comparable
from tracekit.model.job import Job
from tracekit.model.note import Note
from tracekit.model.run import FormName
from tracekit.statements.notes.recordings import NoRichRecording
from tracekit.wings import load, over_ranks


def compare(a: Side, b: Side, order: tuple[FormName, ...] = (), job: Job | None = None) -> Comparison:
    """What changed from A (before) to B (after).

    `order` is the form of each timed call in the sequence they ran (`Run.order`); empty when the two sides were not
    timed together. `job` is what changed over all ranks of a run, of which the sides are one's.
    """
    a, b = with_as_many_steps(*with_waiting_lines(note_calls(a), note_calls(b)))
    unlike: tuple[Note, ...] = ()
    if (a.rich is None) != (b.rich is None) and a.form is not None and b.form is not None:
        # A rich recording of one side would divide that side's idle time and not the other's: then neither is divided.
        unlike = (NoRichRecording(a.label if a.rich is None else b.label),)
        a, b = replace(a, rich=None), replace(b, rich=None)
    a, b = (replace(each, bound=find_bound(each)) for each in (a, b))
    verdict, of_timing = judge(a, b, order)
    verdict = replace(verdict, apart=find_separate_runs_change(a, b, verdict))
    cells, of_matching = find_cells(a, b) if comparable(a, b) else (None, ())
    groups = group_kernels(a, b, cells) if comparable(a, b) else ()
    matched = coverage.measure_coverage(groups) if groups else None
    # Of CPU runs groups show where time went: nothing is concluded from them.
    of_gpu = () if a.on_cpu or b.on_cpu else groups
    unused = why_no_provenance(a, b) if cells and of_gpu else None
    doubts = (
        *coverage.find_little_matched(matched),
        *coverage.find_inexact(groups, unused, bare=not (a.settings and b.settings)),
        *coverage.find_doubts(a, b),
        *of_matching,
    )
    exposed = job.exposed_parts() if job else ()
    ranks = over_ranks() if job else None
    of_job: tuple[Note, ...] = load(ranks.notes)(b, job) if ranks else ()
    waterfall = build_waterfall(a, b, of_gpu, exposed)
    comparison = Comparison(
        a=a,
        b=b,
        verdict=verdict,
        deltas=measure_deltas(a, b),
        waterfall=waterfall,
        groups=groups,
        coverage=matched,
        findings=(),
        notes=(
            *of_timing,
            *find_fallbacks(a, b),
            *find_unfairness(a, b, joined=bool(exposed)),
            *of_job,
            *(() if a.on_cpu or b.on_cpu else doubts),
            *unlike,
        ),
        traffic=coverage.total_traffic(of_gpu),
        break_even=find_break_even(a, b, verdict),
        accuracy=with_worst_rank(judge_accuracy(a, b), b),
        reason=find_reason(a, b, verdict, waterfall),
        modules=time_by_module(groups),
        job=job,
    )
    if not comparable(a, b):
        return comparison
    return replace(comparison, findings=find_all(replace(comparison, groups=of_gpu)))


def measure_deltas(a: Side, b: Side) -> Deltas:
    """Idle is the unprofiled wall's where both sides have one, else the recording's: what the waterfall uses too."""
    if not comparable(a, b):
        return Deltas()
    unprofiled = a.unprofiled_idle_us is not None and b.unprofiled_idle_us is not None
    figures = (
        (a.kernels_per_step, b.kernels_per_step),
        (a.launches_per_step, b.launches_per_step),
        (a.busy_us, b.busy_us),
        (a.unprofiled_idle_us, b.unprofiled_idle_us) if unprofiled else (a.recorded_idle_us, b.recorded_idle_us),
    )
    return Deltas(*(None if before is None or after is None else after - before for before, after in figures))
