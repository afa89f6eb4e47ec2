"""Both forms of a run over ranks, joined: what the command says of every rank."""

import json
import math
from pathlib import Path

import pytest
from tests.cli.runs import assert_refused, invoke
from tests.ranks.compared.job_runs import FormOfJob, make_job_run, played
from tests.ranks.recorded import unpack
from tests.ranks.recordings import Program, Talk, Work

from tracekit import store
from tracekit.model.run import FormName
from tracekit.reading.sides import BOTH, compare_job
from tracekit.reading.traces import Reading


def program(rank: int, *works_us: tuple[float, float]) -> Program:
    """A product and an all-reduce of all, which takes 20 us, again and again; `works_us` are rank 0's and rank 1's."""
    steps = [(Work(each[rank]), Talk(at, (0, 1))) for at, each in enumerate(works_us)]
    return [part for step in steps for part in step]


def folder_of(parent: Path) -> Path:
    """Eager, rank 1 is late twice by 40 us; compiled it is not, and one all-reduce is gone."""
    eager = {rank: program(rank, (100, 140), (100, 140)) for rank in (0, 1)}
    compiled = {rank: program(rank, (120, 120)) for rank in (0, 1)}
    return make_job_run(
        parent, {"eager": (played(eager), (500.0, 480.0)), "compiled": (played(compiled), (250.0, 260.0))}
    )


def test_every_rank_has_a_waterfall_that_closes_between_its_own_calls(tmp_path: Path) -> None:
    report, out = tmp_path / "job.html", tmp_path / "job.json"
    told = invoke("compare", folder_of(tmp_path), "--out", report, "--json", out, "--no-cache")
    assert told.exit_code == 0, told.output
    comparison = json.loads(out.read_text())
    job = comparison["job"]
    assert (job["slowest"], job["recording"], job["clock"]) == (1, "light", "one_host")
    # The sides are the slowest rank's.
    assert all("rank1" in comparison[side]["path"] for side in "ab")
    first, second = job["ranks"]
    for each, ends in ((first, (500, 250)), (second, (480, 260))):
        fall = each["waterfall"]
        assert (fall["a_us"], fall["b_us"]) == pytest.approx(ends, rel=1e-3)
        parts = math.fsum(part["delta_us"] for part in fall["parts"])
        assert fall["a_us"] + parts + fall["residual_us"] == pytest.approx(fall["b_us"])
        for form in (each["a"], each["b"]):
            spent = form["compute_us"] + form["exposed_transfer_us"] + form["exposed_waiting_us"] + form["idle_us"]
            assert spent == pytest.approx(form["wall_us"])
    assert [each["a"]["exposed_waiting_us"] for each in job["ranks"]] == pytest.approx([80, 0])
    assert [each["b"]["exposed_transfer_us"] for each in job["ranks"]] == pytest.approx([20, 20])
    (waits,) = first["a"]["waits"]
    assert (waits["rank"], waits["causes"][0]["cause"]) == (1, "compute")
    (kind,) = job["collectives"]
    assert (kind["name"], kind["a_count"], kind["b_count"]) == ("all_reduce", 2, 1)
    assert "communication_not_judged" not in {note["code"] for note in comparison["notes"]}
    assert sum(part["kind"] == "communication" for part in comparison["waterfall"]["parts"]) == 3


def test_ranks_have_a_line_in_the_terminal_and_a_row_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    folder, report = folder_of(tmp_path), tmp_path / "job.html"
    told = invoke("compare", folder, "--out", report, "--no-cache")
    lines = told.output.splitlines()
    assert len(lines) <= 30
    assert sum("rank 0" in line or "rank 1" in line for line in lines) >= 3
    page, twin = report.read_text(), report.with_suffix(".md").read_text()
    assert 'id="ranks"' in page and "| rank 0, eager |" in twin
    # A form against itself, or a rank's own folder, is no job's change.
    assert invoke("compare", folder / "rank1", "--no-cache", "--out", tmp_path / "one.html").exit_code == 0
    assert 'id="ranks"' not in (tmp_path / "one.html").read_text()


def test_a_rank_that_compiled_other_collectives_is_named(tmp_path: Path) -> None:
    alike = {rank: program(rank, (100, 100)) for rank in (0, 1)}
    # Which waits for nobody: rank 0 has no such one.
    more = [Work(100), Talk("own", (0, 1), name="allgather", flow=frozenset())]
    other, walls = {0: alike[0], 1: [*more, *alike[1]]}, (500.0, 480.0)
    folder = make_job_run(tmp_path, {"eager": (played(alike), walls), "compiled": (played(other), walls)})
    out = tmp_path / "job.json"
    told = invoke("compare", folder, "--out", tmp_path / "job.html", "--json", out, "--no-cache")
    assert told.exit_code == 0, told.output
    (note,) = [each for each in json.loads(out.read_text())["notes"] if each["code"] == "rank_collectives"]
    assert (note["facts"]["ranks"], note["facts"]["count"], note["facts"]["usual_count"]) == ([1], 1, 0)
    assert "rank 1 alone issues" in told.output


def test_a_gate_on_communication_judges_the_rank_with_most_of_one_run_and_of_two(tmp_path: Path) -> None:
    base, new = (folder_of(tmp_path / name) for name in ("base", "new"))
    conditions = ("waiting<=+0", "exposed<=30us", "waiting<=1us", "exposed<=1us", "wall<=-40%")
    for sides in ((base,), (base, new, "--form-a", "eager")):
        out = tmp_path / f"{len(sides)}.json"
        gates = [word for each in conditions for word in ("--gate", each)]
        told = invoke("compare", *sides, *gates, "--json", out, "--out", tmp_path / f"{len(sides)}.html", "--no-cache")
        assert told.exit_code == 3, told.output
        checked = json.loads(out.read_text())["gate"]["checked"]
        # How much of it another recording would show is in doubt; the wall time is the slowest rank's.
        assert [each["outcome"] for each in checked[:4]] == ["pass", "pass", "inconclusive", "fail"]
        assert [each["base"] for each in checked] == pytest.approx([80, 120, 80, 120, 500], rel=1e-2)
        assert [each["new"] for each in checked] == pytest.approx([0, 20, 0, 20, 260], abs=1)
    assert checked[4]["outcome"] != "fail"


def test_a_gate_on_communication_needs_as_many_ranks_on_both_sides(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    for sides in ((folder / "rank1",), (folder, folder / "rank1")):
        assert_refused(invoke("compare", *sides, "--gate", "waiting<=1ms"), "is for runs over several ranks, and")
    told = invoke("compare", folder, folder, "--form-a", "eager", "--form-b", "eager", "--gate", "exposed<=+0")
    assert told.exit_code == 4, told.output


def test_two_real_ranks_of_both_forms_are_told_as_by_hand(tmp_path: Path) -> None:
    recordings, forms = unpack("fsdp2", tmp_path), dict[FormName, FormOfJob]()
    for name in BOTH:
        forms[name] = [(recordings / f"{name}.rank{rank}.json").read_text() for rank in (0, 1)], (5e4, 5e4)
    folder = make_job_run(tmp_path, forms, ("light",))
    sides = [(folder, store.load(folder), name) for name in BOTH]
    job = compare_job(sides[0], sides[1], Reading(window="whole", cached=False))
    calls = [call for each in job.ranks for call in (each.a, each.b) if call]
    by_hand = [
        (13496.4, 13869.4, 10288.2),
        (14217.5, 6674.4, 4643.9),
        (13501.8, 7753.5, 291.6),
        (14209.9, 3438.6, 1164.6),
    ]
    for call, told in zip(calls, by_hand, strict=True):
        assert (call.transfer_us, call.exposed_us, call.exposed_waiting_us) == pytest.approx(told, abs=0.1)
    assert all(each.waterfall and abs(each.waterfall.residual_us) < 1e-6 for each in job.ranks)
    # As many bytes in as many collectives, with more compute beside them.
    counts = [(each.name, each.a_count, each.b_count) for each in job.collectives]
    assert counts == [("all_gather", 39, 39), ("reduce_scatter", 21, 21)]
