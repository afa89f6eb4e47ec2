"""Provenance of real GPU work: `tracekit profile flux`, and links between its light recordings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.gpu.conftest import profile, profile_in_a_process

from tracekit import store
from tracekit.analysis.kernels import family_of
from tracekit.analysis.window import Scope, find_scope
from tracekit.comparison.matching.launch_sites import is_generated, join_operators, place
from tracekit.comparison.matching.pairing import Cell
from tracekit.comparison.matching.provenance_links import link
from tracekit.model.note import Note
from tracekit.model.provenance import CompiledSites, EagerOps
from tracekit.model.sequence import Activity, Sequence
from tracekit.tracefile.read import read_trace

#: What is compiled and how, and at which size.
CASES = [
    pytest.param(("tiny", "transformer", "default"), id="tiny"),
    pytest.param(("tiny", "transformer", "reduce-overhead"), id="tiny-graphed"),
    pytest.param(("tiny", "regional", "default"), id="tiny-regional"),
    pytest.param(("tiny", "regional", "reduce-overhead"), id="tiny-regional-graphed"),
    pytest.param(("tiny", "all", "default"), id="tiny-all"),
    pytest.param(("small", "transformer", "default"), id="small", marks=pytest.mark.slow),
    pytest.param(("small", "transformer", "reduce-overhead"), id="small-graphed", marks=pytest.mark.slow),
    pytest.param(("small", "regional", "default"), id="small-regional", marks=pytest.mark.slow),
]


@dataclass(frozen=True)
class Case:
    folder: Path
    run: Any
    eager: EagerOps
    compiled: CompiledSites
    a: Sequence
    b: Sequence
    cells: tuple[Cell, ...]
    notes: tuple[Note, ...]


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    size, scope, mode = request.param
    options = ["--compiled", "--size", size, "--scope", scope, "--mode", mode, "--iterations", "3"]
    folder, run = profile(tmp_path_factory.mktemp("-".join(request.param)), "flux", *options)
    eager, compiled = (store.load_provenance(folder, form) for form in run.forms)
    assert isinstance(eager, EagerOps), run.noted
    assert isinstance(compiled, CompiledSites), run.noted
    # The light recordings of both hold as many calls as are short.
    scopes = [find_scope(read_trace(store.recording_path(folder, form, "light")), "steps") for form in run.forms]
    a, b = (sequence_of(scope, min(len(each.spans) for each in scopes)) for scope in scopes)
    return Case(folder, run, eager, compiled, a, b, *link(a, b, eager, compiled))


def sequence_of(scope: Scope, steps: int) -> Sequence:
    """All activities of so many steps of the light recording, in the order of launch."""
    launches = scope.calls.select("call", launch_ns="start_ns")
    table = scope.activities.filter(pl.col("step") < steps).join(launches, on="call", how="left")
    table = table.with_columns(
        at=pl.coalesce("launch_ns", "start_ns"), us=(pl.col("end_ns") - pl.col("start_ns")) / 1e3
    )
    # All of one name by their median: one that others' work on the GPU held up would outweigh hundreds.
    table = table.with_columns(pl.col("us").median().over("name"))
    rows = table.sort("step", "at", "start_ns").select("name", "kind", "us").iter_rows()
    activities = tuple(
        Activity(name, family_of(name) if kind == "kernel" else kind, us, None) for name, kind, us in rows
    )
    return Sequence(activities, 1 / steps, "none")


def share_of_time(sequence: Sequence, positions: set[int]) -> float:
    every = sum(activity.duration_us for activity in sequence.activities)
    return sum(sequence.activities[i].duration_us for i in positions) / every


def longest(sequence: Sequence, without: set[int]) -> list[Any]:
    """What is missing, the longest first: for the message of a failing test."""
    left = [(each.duration_us, i, each.name[:80]) for i, each in enumerate(sequence.activities) if i not in without]
    return sorted(left, reverse=True)[:10]


def test_light_recordings_run_exactly_what_was_asked_where_it_comes_from(case: Case) -> None:
    assert not [note for note in case.notes if note.code == "not_in_provenance"]


def test_every_triton_kernel_has_its_launch_site(case: Case) -> None:
    families = {activity.name: activity.family for activity in case.b.activities}
    sited = {i for each in place(case.compiled, families) if len(each.sites) == 1 for i in each.activities}
    triton = {i for i, each in enumerate(case.compiled.activities) if is_generated(each.name)}
    assert len(triton) > 20
    assert triton <= sited, [case.compiled.activities[i] for i in sorted(triton - sited)[:10]]


def test_every_launch_site_is_launched(case: Case) -> None:
    families = {activity.name: activity.family for activity in case.b.activities}
    launched = {site for each in place(case.compiled, families) for site in each.sites}
    every = {
        (number, site)
        for number, call in enumerate(case.compiled.calls)
        if call.graph is not None
        for site in range(len(case.compiled.graphs[call.graph].sites))
    }
    assert every <= launched, [
        case.compiled.graphs[case.compiled.calls[number].graph or 0].sites[site].kernel
        for number, site in sorted(every - launched)[:10]
    ]


@pytest.mark.parametrize("side", ["a", "b"])
def test_nearly_all_time_of_both_sides_is_linked_and_most_of_it_exactly(case: Case, side: str) -> None:
    sequence: Sequence = getattr(case, side)
    used = [(i, each.exact) for each in case.cells for i in getattr(each, side)]
    linked, exactly = {i for i, _ in used}, {i for i, exact in used if exact}
    assert len(used) == len(linked), "no position is in two links"
    assert share_of_time(sequence, linked) >= 0.99, (longest(sequence, linked), case.notes)
    # Between two kernels of its own a replay tells library calls apart by their families alone.
    least = 0.85 if case.run.settings.mode == "reduce-overhead" else 0.95
    assert share_of_time(sequence, exactly) >= least, (longest(sequence, exactly), case.notes)


def test_operators_and_launches_agree_on_their_sizes(case: Case) -> None:
    join = join_operators(case.eager, case.compiled)
    assert join.wrong_sizes == 0
    # A text encoder's masks are made otherwise under the compiler; the run's notes count such sites.
    sites = sum(len(graph.sites) for graph in case.compiled.graphs)
    assert len(join.unexplained) <= 0.02 * sites, join.unexplained[:5]


def test_every_eager_kernel_was_launched_by_an_operator_with_a_line(case: Case) -> None:
    ops = [case.eager.ops[each.op] for each in case.eager.activities if each.op is not None]
    assert len(ops) >= 0.98 * len(case.eager.activities)
    assert all(op.line for op in ops)
    assert not any(op.line and op.line.startswith("/") for op in ops)


def test_the_pass_that_asks_leaves_timing_alone(case: Case) -> None:
    assert case.run.form("compiled").compilation.during_timing == 0
    codes = {"provenance_failed", "provenance_incomplete"}
    assert codes.isdisjoint(each.code for each in case.run.noted), case.run.noted


def test_a_second_process_gets_the_same_from_the_cache(tmp_path: Path) -> None:
    """The compiled graphs come from Inductor's cache, and bring their provenance."""
    options = ("--compiled", "--no-baseline", "--size", "tiny", "--iterations", "2", "--force")
    told = []
    for _ in range(2):
        cache = str(tmp_path / "inductor")
        folder, run = profile_in_a_process(tmp_path, "flux", *options, TORCHINDUCTOR_CACHE_DIR=cache)
        found = store.load_provenance(folder, run.form("compiled"))
        assert isinstance(found, CompiledSites)
        assert not found.noted
        told.append([(graph.root, [site.kernel for site in graph.sites]) for graph in found.graphs])
    assert told[0] == told[1]
    assert run.form("compiled").compilation.cache_hits >= 1
