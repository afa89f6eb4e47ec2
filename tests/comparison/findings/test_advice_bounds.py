"""Advice saves at most what it removes: by causes of idle time, and by all that this project has measured."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sides import COMPILED, EAGER, ORDER, make_analysis, make_form, make_settings, make_side, scaled

from docs.making.collecting import RESULTS, read_runs
from tracekit.comparison.comparing import compare
from tracekit.comparison.findings.launch_bound import WITH, graphs_saving
from tracekit.comparison.waiting import idle_at_most, idle_saving, most_slowed
from tracekit.model.comparison import Finding, Side
from tracekit.model.compilation import CompiledRegions, Diagnostics, GraphBreak, RegionTime
from tracekit.model.idle_estimate import Between, IdleEstimate
from tracekit.model.quartiles import HostTimes
from tracekit.model.run import Recording

#: A call of 2 ms, in which the GPU is idle for so long.
WALL_US = 2000.9
BREAK = GraphBreak("model.py:20", "forward", "Unsupported", None, None, None, ("0/0",), 700.0, None, 600.0)
ITEM = replace(BREAK, where="model.py:30", hint="capture_scalar_outputs = True", idle_per_step_us=100.0)


def idle_us() -> float:
    found = side().unprofiled_idle_us
    assert found is not None
    return found


def side(
    causes: Mapping[str, tuple[float, float, float]] | None = None,
    *,
    after_sync_us: Mapping[str, float] | None = None,
    breaks: tuple[GraphBreak, ...] = (),
    regions: CompiledRegions | None = None,
    **settings: Any,
) -> Side:
    """Compiled, with idle time per call by cause: its figure, its low and its high end."""
    form = make_form("compiled", scaled(2), diagnostics=Diagnostics(breaks=breaks))
    analysis = replace(make_analysis(COMPILED, idle_us=4000.0), regions=regions)
    estimate = None
    if causes is not None:
        betweens = {cause: Between(*figures) for cause, figures in causes.items()}
        estimate = IdleEstimate(betweens, dict(after_sync_us or {}))
    return make_side("compiled", analysis, form, settings=make_settings(**settings), idle_estimate=estimate)


def findings(b: Side) -> dict[str, Finding]:
    eager = make_side("eager", make_analysis(EAGER, idle_us=4000.0), make_form("eager", scaled(2.5)))
    return {each.code: each for each in compare(eager, b, ORDER).findings}


def launching(us: float, **others: float) -> dict[str, tuple[float, float, float]]:
    """Launching and other causes, a tenth more or less, that are all idle time."""
    figures = {"launch_call": us, **others}
    figures["device"] = idle_us() - sum(figures.values())
    return {cause: (each, 0.9 * each, 1.1 * each) for cause, each in figures.items()}


def test_cuda_graphs_save_the_high_ends_of_what_they_do_away_with_and_nothing_of_the_users_code():
    figures = launching(600.0, op_dispatch=200.0, compiled_wrapper=100.0, launch_latency=100.0, python=100.0, gc=50.0)
    finding = findings(side(figures))["launch_bound"]
    assert finding.saving_us == pytest.approx(1.1 * 1000)
    assert finding.statement.launching_share == pytest.approx(1000 / idle_us())
    # What nothing explains may be theirs too, and all of it is never more than there is.
    less = {cause: figures[cause] for cause in figures if cause != "gc"}
    assert findings(side(less))["launch_bound"].saving_us == pytest.approx(1100 + 50)
    wide = {**figures, "launch_call": (600.0, 0.0, 5000.0)}
    assert findings(side(wide))["launch_bound"].saving_us == idle_us()


def test_without_ranges_the_figures_themselves_are_the_bound():
    b = side()
    assert b.idle_ranges() is None
    causes = b.calibrated_idle_by_cause()
    assert graphs_saving(b) == pytest.approx(causes["op_dispatch"] + causes["launch_call"] + b.idle_residual_us)


@pytest.mark.parametrize("cause", ["python", "guards", "gc", "sync_wait", "device"])
def test_a_gpu_that_is_idle_for_what_graphs_leave_is_not_told_to_use_graphs(cause: str):
    others = {cause: (1000.0, 900.0, 1100.0), "launch_call": (400.0, 300.0, 500.0)}
    assert "launch_bound" not in findings(side(others))
    assert "launch_bound" in findings(side({"op_dispatch": others[cause], "launch_call": others["launch_call"]}))


def test_graphs_capture_only_what_compiled_code_launches():
    # In two steps.
    regions = CompiledRegions((RegionTime("0/0", 2, 500.0, 80.0),), 2, 2, 0.0, 0.0, 600.0, 1418.0, 0.0, 20, 46, 1500.0)
    assert findings(side(launching(1000.0), regions=regions))["launch_bound"].saving_us == 750.0
    # Most of the launching is not theirs.
    assert "launch_bound" not in findings(side(launching(1000.0), regions=replace(regions, idle_us=1000.0)))
    unknown = replace(regions, idle_us=None)
    assert findings(side(launching(1000.0), regions=unknown))["launch_bound"].saving_us == pytest.approx(1100)


def test_what_was_tuned_keeps_its_tuning_with_graphs():
    for mode, graphs in (("default", "reduce-overhead"), ("max-autotune-no-cudagraphs", "max-autotune")):
        assert findings(side(launching(1200.0), mode=mode))["launch_bound"].changes == {"mode": graphs}


def test_a_break_stands_before_graphs_where_it_leaves_the_gpu_idle_for_longer():
    figures = launching(500.0, python=700.0)
    found = findings(side(figures, breaks=(BREAK,)))
    assert found["broken_graphs"].saving_us == 600.0
    assert "launch_bound" not in found
    both = findings(side(launching(900.0, python=550.0), breaks=(replace(BREAK, idle_per_step_us=500.0),)))
    assert [code for code in both if code in ("broken_graphs", "launch_bound")] == ["launch_bound", "broken_graphs"]


def test_a_break_saves_no_more_than_the_idle_time_that_is_the_hosts_outside_of_graphs():
    figures = launching(0.0, python=200.0, guards=50.0, compiled_wrapper=500.0)
    assert findings(side(figures, breaks=(BREAK,)))["broken_graphs"].saving_us == pytest.approx(
        idle_us() - 0.9 * (idle_us() - 250)
    )
    # Queued work hid the rest of its 700 us of host time.
    hidden = replace(BREAK, idle_per_step_us=5.0)
    finding = findings(side(figures, breaks=(hidden,)))["broken_graphs"]
    assert (finding.saving_us, finding.statement.costly) == (5.0, False)


def test_a_switch_saves_what_it_removes_and_is_advised_where_the_costliest_break_is_among_it():
    figures = launching(100.0, python=1000.0)
    code = findings(side(figures, breaks=(ITEM, BREAK)))["broken_graphs"]
    assert (code.environment, code.saving_us) == ({}, 700.0)
    item = replace(ITEM, idle_per_step_us=800.0)
    switched = findings(side(figures, breaks=(item, BREAK)))["broken_graphs"]
    assert ({*switched.environment}, switched.saving_us) == ({"TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS"}, 800.0)


def test_reading_later_saves_what_follows_a_wait():
    figures = {**launching(500.0, python=500.0), "sync_wait": (20.0, 10.0, 30.0)}
    figures["device"] = (figures["device"][0] - 20, 0.0, 1000.0)
    b = side(figures, after_sync_us={"sync_wait": 20.0, "python": 200.0, "launch_call": 50.0})
    # A tenth of all Python and of all launch calls may follow it too; of the rest others leave this at their lows.
    assert idle_saving(b, 5000.0) == pytest.approx(250 + 100 + idle_us() - 450 - 450)
    assert idle_saving(b, 100.0) == 100.0


def test_a_host_that_was_slower_while_timed_saves_as_much_more():
    figures = launching(100.0, python=1100.0)
    of_idle = findings(side(figures, breaks=(BREAK,)))["broken_graphs"]
    form = make_form("compiled", scaled(2), diagnostics=Diagnostics(breaks=(BREAK,)))
    recorded = Recording("light", "compiled-light.json", 3, 9, host_us=(30.0, 25.0, 28.0))
    slower = replace(form, host=HostTimes(30.0, 28.0, 42.0), recordings=(recorded,))
    b = replace(side(figures, breaks=(BREAK,)), form=slower)
    assert most_slowed(b) == 42 / 28
    assert findings(b)["broken_graphs"].saving_us == pytest.approx(1.5 * of_idle.saving_us)
    faster = replace(slower, host=HostTimes(20.0, 18.0, 22.0))
    assert most_slowed(replace(b, form=faster)) == most_slowed(side(figures)) == 1.0


def test_of_a_trace_alone_the_recorded_idle_time_is_the_bound():
    bare = make_side("trace", make_analysis(COMPILED, idle_us=400.0))
    assert idle_at_most(bare, ("op_dispatch",)) == pytest.approx(0.75 * 200)


#: What each piece of advice changes in the settings of a run.
ADVICE = {"launch_bound": lambda run: {"mode": WITH[run["mode"]]}, "uncompiled_component": lambda _: {"scope": "all"}}
#: Settings that make another work of it.
WORK = ("nproc", "parallel", "workload", "size", "dtype", "scope", "mode", "batch_size", "height", "width", "steps")


def work_of(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(settings.get(name) for name in WORK)


def measured() -> Iterator[tuple[str, tuple[Any, ...], float]]:
    """Every compiled call that was measured, by GPU and by what was run."""
    for run in read_runs():
        if "settings" in run:
            yield run["environment"]["gpu"], work_of(run["settings"]), run["compiled"]["wall_us"]
    for path in RESULTS.glob("sweep-*.json"):
        for work in json.loads(path.read_text(encoding="utf-8"))["works"]:
            for cell in work["cells"]:
                if cell["compiled"]:
                    how = {name: cell[name] for name in ("mode", "scope") if name in cell}
                    yield work["machine"], work_of({**work["settings"], **how}), cell["compiled"]["median_us"]


def test_no_run_of_ours_beats_what_the_advice_was_said_to_save_at_most():
    calls, held = list(measured()), []
    for run in read_runs():
        for finding in run.get("findings", ()):
            tried = [finding["verified"]["measured_us"]] if "verified" in finding else []
            if finding["code"] in ADVICE:
                settings = run["settings"]
                advised = work_of({**settings, **ADVICE[finding["code"]](settings)})
                tried += [us for gpu, work, us in calls if (gpu, work) == (run["environment"]["gpu"], advised)]
            for us in tried:
                held.append(run["name"])
                assert us >= run["compiled"]["wall_us"] - finding["saving_us"], (run["name"], finding["code"])
    # Of ViT what was tried in another process, another run and a cell of a sweep.
    tried_once = ("beit", "deeplabv3-mobilenet-b16", "flux-compiled", "vit-max-autotune-no-cudagraphs")
    assert Counter(held) == {
        "h200-vit": 3,
        "h100-vit": 3,
        "h100-4p-vit": 2,
        **{f"h200-{name}": 1 for name in tried_once},
    }
