from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.advised import command_of
from tests.sequences import make_activity, make_sequence
from tests.sides import COMPILED, EAGER, STEADY, make_analysis, make_form, make_pair, make_settings, make_side, scaled

from tracekit.comparison import compare
from tracekit.comparison.findings.lost_attention import find_lost_attention
from tracekit.model.comparison import Finding, Side
from tracekit.model.note import Severity
from tracekit.model.run import FormName
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side

ORDER: tuple[FormName, ...] = ("eager", "compiled") * 10
LOST = {"gemm_128x64": ("gemm", 20, 1010.0), "bmm_f32": ("gemm", 8, 500.0), "triton_a": ("triton", 10, 110.0)}


def found(a: Side, b: Side) -> dict[str, Finding]:
    return {finding.code: finding for finding in compare(a, b, ORDER).findings}


def eager(kernels=EAGER) -> Side:
    return make_side("eager", make_analysis(kernels), make_form("eager", STEADY))


def compiled(kernels=COMPILED, wall_us: tuple[float, ...] = STEADY, **analysis: object) -> Side:
    return make_side("compiled", make_analysis(kernels, **analysis), make_form("compiled", wall_us))


def test_a_healthy_comparison_asks_for_nothing():
    a, b = make_pair(scaled(1.5), scaled(0.9))
    assert {finding.severity for finding in found(a, b).values()} <= {"info"}


def test_attention_lost_to_products_is_found_with_its_cost():
    finding = found(eager(), compiled(LOST))["lost_attention"]
    assert finding.saving_us == pytest.approx((1510 - 1000) / 2 - 200 / 2)
    assert (finding.facts["a"], finding.facts["attention_before_us"]) == ("eager", 100.0)


@pytest.mark.parametrize("product_us", [550.0, 600.0, 700.0])
def test_attention_that_is_lost_at_no_cost_has_no_saving(product_us: float):
    """The products take 25, 50 and 100 us a step longer, and the attention took 100."""
    kernels = {**LOST, "gemm_128x64": ("gemm", 20, product_us)}
    assert found(eager(), compiled(kernels))["lost_attention"].saving_us is None


def test_attention_that_was_never_there_or_is_half_there_is_not_lost():
    without = {name: each for name, each in EAGER.items() if each[0] != "attention"}
    assert "lost_attention" not in found(eager(without), compiled(LOST))
    for us, lost in ((100.0, False), (10.0, True)):
        kernels = {**EAGER, "gemm_128x64": ("gemm", 20, 1400.0), "flash_fprop": ("attention", 2, us)}
        assert ("lost_attention" in found(eager(), compiled(kernels))) is lost


def with_attention(us: float, count: int = 4, name: str = "flash_fprop") -> Side:
    others = {key: each for key, each in COMPILED.items() if each[0] != "attention"}
    return compiled({**others, name: ("attention", count, us)})


def test_attention_that_is_kept_and_takes_longer_is_found_with_its_cost():
    finding = found(eager(), with_attention(440))["slower_attention"]
    assert finding.saving_us == pytest.approx((440 - 200) / 2)
    assert finding.facts == {"before_us": 100.0, "after_us": 220.0, "shown_by": []}
    # FLUX has the scope that compiles its blocks one by one, and --verify-advice can try it.
    assert finding.changes == {"scope": "regional"}
    assert "--scope regional" in command_of(finding)
    assert "slower_attention" in found(eager(), with_attention(440, name="fmha_cutlassF"))


@pytest.mark.parametrize(("before_us", "us"), [(200, 200), (200, 240), (200, 20), (4, 12)])
def test_attention_that_takes_about_as_long_or_hardly_any_time_is_not_slower(before_us: float, us: float):
    a = eager({**EAGER, "flash_fprop": ("attention", 4, before_us)})
    assert "slower_attention" not in found(a, with_attention(us))


SDPA, FLASH = "_scaled_dot_product_cudnn_attention", "_flash_attention_forward"


def attending(query: tuple[int, ...], key: tuple[int, ...], us: float, within: str = SDPA) -> Side:
    """A side that only attends, for `us` microseconds."""
    call = make_activity("flash_fprop", "attention", within, (query, key, key), 0, us)
    return replace(compiled({"flash_fprop": ("attention", 2, 2 * us)}), sequence=make_sequence([call]))


@pytest.mark.parametrize(
    ("query", "key", "within", "slower"),
    [
        ((1, 4, 64, 8), (1, 4, 64, 8), SDPA, True),
        # The same queries on more keys, laid out in another order, or with batch and heads as one.
        ((1, 4, 64, 8), (1, 8, 64, 8), SDPA, True),
        ((1, 64, 4, 8), (1, 64, 4, 8), FLASH, True),
        ((4, 64, 8), (4, 64, 8), FLASH, True),
        # Another batch, length, or number of heads: other work.
        ((8, 4, 64, 8), (8, 4, 64, 8), SDPA, False),
        ((1, 4, 96, 8), (1, 4, 96, 8), SDPA, False),
        ((1, 6, 64, 8), (1, 6, 64, 8), SDPA, False),
        ((8, 64, 8), (8, 64, 8), FLASH, False),
    ],
)
def test_attention_is_slower_only_where_the_queries_have_the_same_sizes(
    query: tuple[int, ...], key: tuple[int, ...], within: str, slower: bool
):
    a, b = attending((1, 4, 64, 8), (1, 4, 64, 8), 100.0), attending(query, key, 220.0, within)
    assert ("slower_attention" in found(a, b)) is slower


@pytest.mark.parametrize(
    ("workload", "scope", "repeated", "action"),
    [
        ("vit", "model", ("model.vit.layers.*",), "run_again"),
        ("vit", "model", (), "compile_layers"),
        ("causal-lm", "regional", (), None),
    ],
)
def test_attention_is_answered_with_the_scope_that_keeps_it_or_the_line_of_code(
    workload: str, scope: str, repeated: tuple[str, ...], action: str | None
):
    settings = make_settings(workload=workload, scope=scope)
    finding = found(eager(), replace(with_attention(440), settings=settings, repeated_parts=repeated))[
        "slower_attention"
    ]
    assert (finding.action.code if finding.action else None) == action
    assert finding.changes == ({"scope": "regional"} if repeated else {})
    assert not repeated or "--scope regional" in command_of(finding)


def test_attention_that_became_kernels_of_inductor_s_own_is_lost_too():
    folder = Path(__file__).parents[3] / "traces" / "h200-vit"
    comparison = compare(
        *(load_side(folder, form=name, reading=Reading(shapes=True)) for name in ("eager", "compiled"))
    )
    (finding,) = (each for each in comparison.findings if each.code == "lost_attention")
    # Under max-autotune the products are Triton templates, of which the library's family knows nothing.
    b = comparison.b
    families = tuple(each for each in b.analysis.kernels.by_family if each.family != "gemm")
    kernels = replace(b.analysis.kernels, by_family=families)
    again = find_lost_attention(replace(comparison, b=replace(b, analysis=replace(b.analysis, kernels=kernels))))
    assert again.saving_us == finding.saving_us
    assert again.facts["products_more_us"] <= 0


def test_a_gpu_that_waits_for_launches_is_told_to_use_graphs():
    finding = found(eager(), compiled(wall_us=scaled(2)))["launch_bound"]
    assert finding.saving_us == pytest.approx(800 / 2)
    assert command_of(finding).startswith("tracekit profile flux --compiled --mode reduce-overhead")


@pytest.mark.parametrize("other", [{"causes": {"sync_wait": 0.9, "op_dispatch": 0.1}}, {"graph_launches": 2}])
def test_a_gpu_that_waits_for_synchronisation_or_uses_graphs_is_not_launch_bound(other: dict[str, object]):
    assert "launch_bound" not in found(eager(), compiled(wall_us=scaled(2), **other))


def test_a_slower_compiled_form_is_told_with_its_cost():
    finding = found(eager(), compiled(wall_us=scaled(1.5)))["compile_slower"]
    assert finding.saving_us == pytest.approx(500.125)
    assert "--mode reduce-overhead" in command_of(finding)
    on_cpu = replace(compiled(wall_us=scaled(1.5)), settings=make_settings(device="cpu"))
    assert found(eager(), on_cpu)["compile_slower"].action is None


def test_graphs_are_advised_where_nobody_knows_how_long_the_gpu_waits():
    # More work was recorded than fits into a call.
    side = compiled({"gemm": ("gemm", 2, 10_000.0)}, scaled(1.5))
    assert side.unprofiled_idle_us is None
    assert "--mode reduce-overhead" in command_of(found(eager(), side)["compile_slower"])


def test_recompilation_while_timed_is_told_with_the_command_that_explains_it():
    b = make_side("compiled", make_analysis(COMPILED), make_form("compiled", STEADY, during_timing=3))
    finding = found(eager(), b)["recompiled_during_timing"]
    assert command_of(finding).startswith("TORCH_LOGS=recompiles tracekit profile flux")


def test_fewer_kernels_are_told_with_what_they_did_to_gpu_time():
    finding = found(eager(), compiled())["fewer_kernels"]
    assert finding.facts == {"a_kernels": 37, "b_kernels": 22, "a_busy_us": 863.0, "b_busy_us": 709.0}


def test_a_recording_that_slowed_its_calls_is_told():
    facts = found(eager(), compiled(idle_us=4000))["profiler_distortion"].facts
    assert facts["on_gpu"]
    assert {each["side"]: each["slowdown"] for each in facts["slowed"]}["compiled"] == pytest.approx(2.71, abs=0.005)


@pytest.mark.parametrize(("factor", "longer"), [(1.04, False), (1.06, True)])
def test_gpu_time_that_grew_by_more_than_recordings_differ_by_is_told_without_a_saving(factor: float, longer: bool):
    kernels = {name: (family, count, factor * us) for name, (family, count, us) in EAGER.items()}
    finding = found(eager(), compiled(kernels)).get("more_gpu_time")
    assert (finding is not None) is longer
    if finding:
        # Where it went, and what that costs, the groups say.
        assert (finding.severity, finding.saving_us) == ("warning", None)
        assert finding.facts["b_busy_us"] == pytest.approx(factor * finding.facts["a_busy_us"])


def test_graphs_that_take_over_launching_are_told():
    graphed = compiled(graph_launches=2)
    facts = found(eager(), graphed)["graphed_launches"].facts
    assert facts["side"] == "compiled" and facts["graphed_share"] is not None
    assert "graphed_launches" not in found(graphed, graphed)


def test_the_graver_stand_first_and_of_those_what_may_save_most(monkeypatch: pytest.MonkeyPatch):
    def finder(code: str, severity: Severity, saving_us: float | None) -> Callable[[object], Finding]:
        return lambda _: Finding(code, severity, {}, saving_us)

    others = (
        finder("told", "info", 900.0),
        finder("small", "warning", 10.0),
        finder("unknown", "warning", None),
        finder("large", "warning", 500.0),
        finder("broken", "error", None),
    )
    monkeypatch.setattr("tracekit.comparison.findings.DOUBTING", (finder("doubt", "info", None),))
    monkeypatch.setattr("tracekit.comparison.findings.FINDERS", others)
    order = [finding.code for finding in compare(*make_pair(scaled(1.5), scaled(0.9)), ORDER).findings]
    assert order == ["doubt", "broken", "large", "small", "unknown", "told"]
