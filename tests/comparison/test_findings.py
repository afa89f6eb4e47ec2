from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tracekit.comparison import compare
from tracekit.comparison.findings.lost_attention import find_lost_attention
from tracekit.model.analysis import Analysis
from tracekit.model.comparison import Finding, Side
from tracekit.model.note import Severity
from tracekit.model.run import FormName, FormResult
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side

from ..advised import command_of
from ..sequences import make_activity, make_sequence
from ..sides import COMPILED, EAGER, STEADY, make_analysis, make_form, make_pair, make_settings, make_side, scaled

ORDER: tuple[FormName, ...] = ("eager", "compiled") * 10
LOST = {"gemm_128x64": ("gemm", 20, 1010.0), "bmm_f32": ("gemm", 8, 500.0), "triton_a": ("triton", 10, 110.0)}


def found(a: Side, b: Side) -> dict[str, Finding]:
    return {finding.code: finding for finding in compare(a, b, ORDER).findings}


def eager(wall_us: tuple[float, ...] = STEADY) -> Side:
    return make_side("eager", make_analysis(EAGER), make_form("eager", wall_us))


def compiled(analysis: Analysis, form: FormResult) -> Side:
    return make_side("compiled", analysis, form)


def test_a_healthy_comparison_asks_for_nothing():
    a, b = make_pair(scaled(1.5), scaled(0.9))
    assert {finding.severity for finding in found(a, b).values()} <= {"info"}


def test_attention_lost_to_products_is_found_with_its_cost():
    finding = found(eager(), compiled(make_analysis(LOST), make_form("compiled", STEADY)))["lost_attention"]
    assert finding.saving_us == pytest.approx((1510 - 1000) / 2 - 200 / 2)
    assert (finding.facts["a"], finding.facts["attention_before_us"]) == ("eager", 100.0)


@pytest.mark.parametrize("product_us", [550.0, 600.0, 700.0])
def test_attention_that_is_lost_at_no_cost_has_no_saving(product_us: float):
    """The products take 25, 50 and 100 us a step longer, and the attention took 100."""
    kernels = {**LOST, "gemm_128x64": ("gemm", 20, product_us)}
    finding = found(eager(), compiled(make_analysis(kernels), make_form("compiled", STEADY)))["lost_attention"]
    assert finding.saving_us is None


def test_attention_that_was_never_there_is_not_lost():
    without = {name: each for name, each in EAGER.items() if each[0] != "attention"}
    a = make_side("eager", make_analysis(without), make_form("eager", STEADY))
    assert "lost_attention" not in found(a, compiled(make_analysis(LOST), make_form("compiled", STEADY)))


def with_attention(us: float, count: int = 4, name: str = "flash_fprop") -> Side:
    kernels = {
        **{key: each for key, each in COMPILED.items() if each[0] != "attention"},
        name: ("attention", count, us),
    }
    return compiled(make_analysis(kernels), make_form("compiled", STEADY))


def test_attention_that_is_kept_and_takes_longer_is_found_with_its_cost():
    finding = found(eager(), with_attention(440))["slower_attention"]
    assert finding.saving_us == pytest.approx((440 - 200) / 2)
    assert finding.facts == {"before_us": 100.0, "after_us": 220.0, "shown_by": []}
    # FLUX has the scope that compiles its blocks one by one, and --verify-advice can try it.
    assert finding.changes == {"scope": "regional"}
    assert "--scope regional" in command_of(finding)
    assert "slower_attention" in found(eager(), with_attention(440, name="fmha_cutlassF"))


@pytest.mark.parametrize("us", [200, 240, 20])
def test_attention_that_takes_about_as_long_is_not_slower(us: float):
    assert "slower_attention" not in found(eager(), with_attention(us))


def test_attention_that_hardly_takes_time_is_not_worth_a_finding():
    a = {**EAGER, "flash_fprop": ("attention", 4, 4.0)}
    b = {**COMPILED, "flash_fprop": ("attention", 4, 12.0)}
    one = make_side("eager", make_analysis(a), make_form("eager", STEADY))
    assert "slower_attention" not in found(one, compiled(make_analysis(b), make_form("compiled", STEADY)))


SDPA = "_scaled_dot_product_cudnn_attention"


def attending(query: tuple[int, ...], key: tuple[int, ...], us: float, within: str = SDPA) -> Side:
    """A side that only attends, for `us` microseconds."""
    side = with_attention(us, count=2)
    analysis = make_analysis({"flash_fprop": ("attention", 2, 2 * us)})
    call = make_activity("flash_fprop", "attention", within, (query, key, key), 0, us)
    return replace(side, analysis=analysis, sequence=make_sequence([call]))


@pytest.mark.parametrize(
    ("query", "key", "within", "slower"),
    [
        ((1, 4, 64, 8), (1, 4, 64, 8), SDPA, True),
        # The same queries on more keys, laid out in another order, or with batch and heads as one.
        ((1, 4, 64, 8), (1, 8, 64, 8), SDPA, True),
        ((1, 64, 4, 8), (1, 64, 4, 8), "_flash_attention_forward", True),
        ((4, 64, 8), (4, 64, 8), "_flash_attention_forward", True),
        # Another batch, length, or number of heads: other work.
        ((8, 4, 64, 8), (8, 4, 64, 8), SDPA, False),
        ((1, 4, 96, 8), (1, 4, 96, 8), SDPA, False),
        ((1, 6, 64, 8), (1, 6, 64, 8), SDPA, False),
        ((8, 64, 8), (8, 64, 8), "_flash_attention_forward", False),
    ],
)
def test_attention_is_slower_only_where_the_queries_have_the_same_sizes(
    query: tuple[int, ...], key: tuple[int, ...], within: str, slower: bool
):
    a, b = attending((1, 4, 64, 8), (1, 4, 64, 8), 100.0), attending(query, key, 220.0, within)
    assert ("slower_attention" in found(a, b)) is slower


def test_a_gpu_that_waits_for_launches_is_told_to_use_graphs():
    finding = found(eager(), compiled(make_analysis(COMPILED), make_form("compiled", scaled(2))))["launch_bound"]
    assert finding.saving_us == pytest.approx(800 / 2)
    assert command_of(finding).startswith("tracekit profile flux --compiled --mode reduce-overhead")


def test_a_gpu_that_waits_for_synchronisation_is_not_launch_bound():
    waiting = make_analysis(COMPILED, causes={"sync_wait": 0.9, "op_dispatch": 0.1})
    assert "launch_bound" not in found(eager(), compiled(waiting, make_form("compiled", scaled(2))))


def test_graphs_are_not_advised_where_they_are_used():
    graphs = make_analysis(COMPILED, graph_launches=2)
    assert "launch_bound" not in found(eager(), compiled(graphs, make_form("compiled", scaled(2))))


def test_a_slower_compiled_form_is_told_with_its_cost():
    finding = found(eager(), compiled(make_analysis(COMPILED), make_form("compiled", scaled(1.5))))["compile_slower"]
    assert finding.saving_us == pytest.approx(500.125)
    assert "--mode reduce-overhead" in command_of(finding)


def test_no_other_mode_is_advised_on_a_cpu():
    b = compiled(make_analysis(COMPILED), make_form("compiled", scaled(1.5)))
    finding = found(eager(), replace(b, settings=make_settings(device="cpu")))["compile_slower"]
    assert finding.action is None


def test_graphs_are_advised_where_nobody_knows_how_long_the_gpu_waits():
    # More work was recorded than fits into a call.
    more = make_analysis({"gemm": ("gemm", 2, 10_000.0)})
    side = compiled(more, make_form("compiled", scaled(1.5)))
    assert side.unprofiled_idle_us is None
    finding = found(eager(), side)["compile_slower"]
    assert "--mode reduce-overhead" in command_of(finding)


def test_recompilation_while_timed_is_told_with_the_command_that_explains_it():
    b = compiled(make_analysis(COMPILED), make_form("compiled", STEADY, during_timing=3))
    finding = found(eager(), b)["recompiled_during_timing"]
    assert command_of(finding).startswith("TORCH_LOGS=recompiles tracekit profile flux")


def test_fewer_kernels_are_told_with_what_they_did_to_gpu_time():
    finding = found(eager(), compiled(make_analysis(COMPILED), make_form("compiled", STEADY)))["fewer_kernels"]
    assert finding.facts == {"a_kernels": 37, "b_kernels": 22, "a_busy_us": 863.0, "b_busy_us": 709.0}


def test_a_recording_that_slowed_its_calls_is_told():
    finding = found(eager(), compiled(make_analysis(COMPILED, idle_us=4000), make_form("compiled", STEADY)))
    facts = finding["profiler_distortion"].facts
    assert facts["on_gpu"]
    assert {each["side"]: each["slowdown"] for each in facts["slowed"]}["compiled"] == pytest.approx(2.71, abs=0.005)


def test_kernels_that_take_longer_are_told_with_how_much():
    a, b = eager(), compiled(make_analysis(LOST), make_form("compiled", STEADY))
    assert a.busy_us is not None
    assert b.busy_us is not None
    findings = found(a, b)
    assert ("more_gpu_time" in findings) is (b.busy_us >= 1.05 * a.busy_us)
    slower = found(b, a) if b.busy_us < a.busy_us else findings
    assert slower["more_gpu_time"].severity == "warning"
    # Where it went, and what that costs, the groups say.
    assert slower["more_gpu_time"].saving_us is None
    assert b.busy_us in (slower["more_gpu_time"].facts["a_busy_us"], slower["more_gpu_time"].facts["b_busy_us"])


def test_graphs_that_take_over_launching_are_told():
    finding = found(eager(), compiled(make_analysis(COMPILED, graph_launches=2), make_form("compiled", STEADY)))
    assert finding["graphed_launches"].facts["side"] == "compiled"
    assert finding["graphed_launches"].facts["graphed_share"] is not None
    both = found(
        compiled(make_analysis(COMPILED, graph_launches=2), make_form("compiled", STEADY)),
        compiled(make_analysis(COMPILED, graph_launches=2), make_form("compiled", STEADY)),
    )
    assert "graphed_launches" not in both


@pytest.mark.parametrize(("factor", "told"), [(1.04, False), (1.06, True)])
def test_gpu_time_that_grew_by_no_more_than_recordings_differ_by_is_not_told(factor: float, told: bool):
    longer = {name: (family, count, factor * us) for name, (family, count, us) in EAGER.items()}
    findings = found(eager(), compiled(make_analysis(longer), make_form("compiled", STEADY)))
    assert ("more_gpu_time" in findings) is told


def test_attention_that_is_half_there_is_not_lost():
    products = {"gemm_128x64": ("gemm", 20, 1400.0)}
    half = {**EAGER, **products, "flash_fprop": ("attention", 2, 100.0)}
    none = {**EAGER, **products, "flash_fprop": ("attention", 2, 10.0)}
    for kernels, lost in ((half, False), (none, True)):
        findings = found(eager(), compiled(make_analysis(kernels), make_form("compiled", STEADY)))
        assert ("lost_attention" in findings) is lost


def test_lost_attention_is_answered_with_the_scope_that_keeps_it_or_the_line_of_code():
    for repeated, told in ((("model.vit.layers.*",), "run_again"), ((), "compile_layers")):
        settings = make_settings(workload="vit", scope="model")
        side = replace(with_attention(440), settings=settings, repeated_parts=repeated)
        finding = found(eager(), side)["slower_attention"]
        assert finding.action is not None and finding.action.code == told
        assert not repeated or "--scope regional" in command_of(finding)
        assert finding.changes == ({"scope": "regional"} if repeated else {})
    by_layers = replace(with_attention(440), settings=make_settings(workload="causal-lm", scope="regional"))
    assert found(eager(), by_layers)["slower_attention"].action is None


def test_attention_that_became_kernels_of_inductor_s_own_is_lost_too():
    folder = Path(__file__).parents[2] / "traces" / "h200-vit"
    reading = Reading(shapes=True)
    sides = [load_side(folder, form=name, reading=reading) for name in ("eager", "compiled")]
    comparison = compare(*sides)
    (finding,) = (each for each in comparison.findings if each.code == "lost_attention")
    # Under max-autotune the products are Triton templates, of which the library's family knows nothing.
    b = comparison.b
    kernels = b.analysis.kernels
    assert kernels is not None
    families = tuple(each for each in kernels.by_family if each.family != "gemm")
    templates = replace(b, analysis=replace(b.analysis, kernels=replace(kernels, by_family=families)))
    again = find_lost_attention(replace(comparison, b=templates))
    assert again is not None and again.saving_us == finding.saving_us
    assert again.facts["products_more_us"] <= 0


def test_the_graver_stand_first_and_of_those_what_may_save_most(monkeypatch: pytest.MonkeyPatch):
    def finder(code: str, severity: Severity, saving_us: float | None) -> Callable[[object], Finding]:
        return lambda _: Finding(code, severity, {}, saving_us)

    doubting = (finder("doubt", "info", None),)
    others = (
        finder("told", "info", 900.0),
        finder("small", "warning", 10.0),
        finder("unknown", "warning", None),
        finder("large", "warning", 500.0),
        finder("broken", "error", None),
    )
    monkeypatch.setattr("tracekit.comparison.findings.DOUBTING", doubting)
    monkeypatch.setattr("tracekit.comparison.findings.FINDERS", others)
    order = [finding.code for finding in compare(*make_pair(scaled(1.5), scaled(0.9)), ORDER).findings]
    assert order == ["doubt", "broken", "large", "small", "unknown", "told"]
