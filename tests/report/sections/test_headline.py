"""What stands below the headline: gate, reason and limits."""

import json
import re
from html import escape

import pytest
from msgspec.structs import replace
from tests.report.conftest import cpu_comparison, timed_comparison
from tests.report.showing import comparison_markdown, comparison_page, told_in_full
from tests.sides import BUSY, STEADY, make_analysis, make_cpu_analysis, make_form, make_side, scaled

from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.model.comparison import Bound, Comparison, Reason, ReasonShare
from tracekit.model.gate import Gate
from tracekit.model.groups import GroupLabel, KernelCounts
from tracekit.model.waterfall import Waterfall, WaterfallPart
from tracekit.report.contract import comparison_json
from tracekit.report.sections.headline import (
    gate_text,
    idle_sentence,
    limit_sentence,
    limit_sentences,
    reason_sentence,
)
from tracekit.report.words.common import verdict_evidence, verdict_sentence
from tracekit.statements.reasons import Exact


def gated(text: str, factor: float = 1.08) -> Comparison:
    sides = [
        replace(make_side(name, make_analysis(BUSY), make_form("compiled", us)), path=f"traces/{name}/x.json.gz")
        for name, us in (("base", STEADY), ("new", scaled(factor)))
    ]
    comparison = compare(*sides)
    return replace(comparison, gate=check(comparison, parse_conditions(text)))


def demanded(comparison: Comparison) -> list[str]:
    return [sentence for _, sentence in gate_text(comparison).conditions]


def test_each_condition_is_told_with_both_figures_and_why():
    first, second, third = demanded(gated("wall<=+3%,kernels<=+0,memory<=+0MiB"))
    assert first.startswith("wall<=+3%: failed. 1.00 ms to 1.08 ms, +")
    assert "±2 % per call" in first
    assert second == "kernels<=+0: passed. 22 to 22, 0; exact."
    assert "3.00 GiB to 3.00 GiB, 0 B" in third
    assert gate_text(replace(gated("wall<=+3%"), gate=None)) is None
    bare = replace(gated("wall<=+3%"), groups=())
    unmeasured = demanded(replace(bare, gate=check(bare, parse_conditions("groups_lost<=+0"))))
    assert unmeasured == ["groups_lost<=+0: inconclusive; not measured on both sides."]


@pytest.mark.parametrize(
    ("ends", "places"), [((12, 12), "12 places"), ((1, 1), "1 place"), ((1, 24), "1 to 24 places")]
)
def test_lost_groups_are_told_as_the_places_that_they_are(ends: tuple[float, float], places: str):
    comparison = gated("groups_lost<=+0")
    (one,), (low, high) = comparison.gate.checked, ends
    checked = replace(one, outcome="fail", base=0.0, new=high, low=low, high=high, reasons=(Exact(),))
    (sentence,) = demanded(replace(comparison, gate=Gate((checked,))))
    assert sentence.startswith(f"groups_lost<=+0: failed. {places} per step")


def test_what_an_inconclusive_gate_ends_as_stands_beside_its_outcome():
    open_, failed = gated("idle<=+9%"), gated("kernels<=0")
    passes = (replace(each, gate=replace(each.gate, taken_for="pass")) for each in (open_, failed))
    asked = "Gate: inconclusive, which passes here (--inconclusive pass)"
    assert [gate_text(each).words for each in (open_, *passes)] == ["Gate: inconclusive", asked, "Gate: failed"]


def test_every_report_begins_with_the_outcome_and_every_condition():
    comparison = gated("wall<=+3%,kernels<=+0")
    without = replace(comparison, gate=None)
    header = re.compile("<header>(.*)</header>", re.DOTALL)
    top = " ".join(header.findall(comparison_page(comparison))[0].split())
    before, _, after = top.partition("conditions")
    assert '<p class="gate fail">Gate: failed</p>' in before
    at = [after.index(escape(sentence, quote=False)) for sentence in demanded(comparison)]
    assert at == sorted(at)
    assert at[-1] < after.index("<h1"), "before what the verdict rests on"
    assert "Gate" not in header.findall(comparison_page(without))[0] + comparison_markdown(without)
    first, _, wall, kernels, *_ = comparison_markdown(comparison).splitlines()
    assert first.startswith("# Gate: failed. In separate runs, new takes 1.08× as long as base (")
    assert wall.startswith("- wall\\<=+3%: failed. 1.00 ms to 1.08 ms")
    assert kernels == "- kernels\\<=+0: passed. 22 to 22, 0; exact."
    begin, _, end = told_in_full(comparison, 100).partition("In separate runs")
    assert "Gate: failed\n  wall<=+3%: failed. 1.00 ms to 1.08 ms" in begin and "kernels<=+0: passed." in begin
    assert "Gate" not in end
    gate = json.loads(comparison_json(comparison))["gate"]
    assert (gate["outcome"], [each["outcome"] for each in gate["checked"]]) == ("fail", ["fail", "pass"])
    assert gate["checked"][0]["condition"] == {"metric": "wall", "kind": "relative", "limit": 0.03, "text": "wall<=+3%"}
    assert json.loads(comparison_json(without))["gate"] is None


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1.08, r"In separate runs, new takes 1\.08× as long as base \(1\.0\d+× to 1\.1\d×\), if all else.*"),
        (0.5, r"In separate runs, new is 2\.00× faster than base \(1\.9\d× to 2\.0\d×\), if all else was.*"),
        (1.0, r"Separate runs leave open which is faster: new takes 0\.97.*"),
    ],
)
def test_the_headline_of_two_runs_says_what_is_known_and_not_the_contrary(factor: float, words: str):
    comparison = gated("wall<=+3%", factor)
    assert re.fullmatch(words, verdict_sentence(comparison))
    assert "±2 % per call" in verdict_evidence(comparison)


TRITON = KernelCounts(1, 1, ())
PRODUCT, PRODUCTS = KernelCounts(1, 0, (("product", 1),)), KernelCounts(2, 0, (("product", 2),))
ATTENTION, CONVOLUTION = KernelCounts(1, 0, (("attention", 1),)), KernelCounts(1, 0, (("convolution", 1),))
FUSED = WaterfallPart("gpu", GroupLabel("fused", 152, KernelCounts(7, 0, ()), TRITON), -500.0)
DISPATCH = WaterfallPart("idle", "op_dispatch", -2000.0, -2500.0)
BECAME = "152x 7 kernels -> 1 Triton −500.0 µs"


def reason(*shares: ReasonShare, unexplained_us: float = 0.0, of_one_process: bool = False) -> str | None:
    found = Reason(-2500.0, shares, unexplained_us, of_one_process)
    return reason_sentence(replace(timed_comparison(), reason=found))


def test_a_reason_is_a_sentence_without_shorthand() -> None:
    shares = ReasonShare("idle", -2000.0, (DISPATCH,), 0.0), ReasonShare("gpu", -300.0, (FUSED,), 200.0)
    assert reason(*shares) == (
        f"Why: GPU idle −2.00 ms (operator dispatch −2.00 ms); kernel time −300.0 µs ({BECAME}; the rest +200.0 µs)."
    )
    longer = ReasonShare("gpu", 300.0, (FUSED,), 0.0), ReasonShare("idle", 200.0, (), 0.0)
    assert reason(*longer) == f"Why: kernel time +300.0 µs ({BECAME}); GPU idle +200.0 µs."
    none = reason(ReasonShare("gpu", 300.0, (), 0.0))
    assert "kernel time +300.0 µs" in none and "15 %" in none
    rest = f"Why: kernel time −500.0 µs ({BECAME}); unexplained −900.0 µs."
    assert reason(ReasonShare("gpu", -500.0, (FUSED,), 0.0), unexplained_us=-900.0) == rest
    recorded = "Why in the recorded process (−2.50 ms per call): GPU idle −500.0 µs."
    assert reason(ReasonShare("idle", -500.0, (), 0.0), of_one_process=True) == recorded
    assert reason_sentence(replace(timed_comparison(), reason=None)) is None


def test_a_reason_has_the_digits_that_its_range_supports_and_says_where_causes_are_not_told_apart() -> None:
    ranged = replace(DISPATCH, low_us=-2800.0, high_us=-1100.0)
    assert reason(ReasonShare("idle", -2000.0, (ranged,), 0.0)) == "Why: GPU idle −2.00 ms (operator dispatch −2.0 ms)."
    comparison = replace(
        timed_comparison(), reason=Reason(-2500.0, (ReasonShare("idle", -2500.0, (), 0.0),), 0.0, False)
    )
    for high_us, words in ((-1.0, "GPU idle −2.50 ms."), (1.0, "GPU idle −2.50 ms (causes not told apart).")):
        part = replace(DISPATCH, low_us=-5000.0, high_us=high_us)
        told = replace(comparison, waterfall=Waterfall("unprofiled", 5000.0, 3000.0, (part,), 0.0))
        assert reason_sentence(told) == f"Why: {words}"


TEN, MANY = KernelCounts(10, 0, (("product", 3),)), "linear, upsample_bilinear2d, cat"


@pytest.mark.parametrize(
    ("repeats", "before", "after", "operators", "words"),
    [
        (3, CONVOLUTION, CONVOLUTION, "conv2d", "3x another convolution kernel"),
        (1, ATTENTION, ATTENTION, "sdpa", "another attention kernel"),
        (1, PRODUCT, PRODUCTS, "mm", "matmul -> 2 matmuls"),
        (1, PRODUCT, replace(PRODUCT, count=2), "mm", "matmul -> matmul + 1 kernel"),
        (1, CONVOLUTION, PRODUCT, "conv2d", "convolution -> matmul"),
        (1, PRODUCTS, PRODUCTS, "mm", "2 matmuls -> 2 matmuls"),
        (1, TEN, replace(TEN, count=7), MANY, "3 matmuls + 7 kernels -> 3 matmuls + 4 kernels"),
    ],
)
def test_one_library_kernel_in_another_s_place_is_told_as_that_and_operators_are_not_cut(
    repeats: float, before: KernelCounts, after: KernelCounts, operators: str, words: str
) -> None:
    part = WaterfallPart("gpu", GroupLabel("substituted", repeats, before, after, (operators,)), 300.0)
    told = f"Why: kernel time +300.0 µs ({words} ({operators}) +300.0 µs)."
    assert reason(ReasonShare("gpu", 300.0, (part,), 0.0)) == told


WORK = {"gemm": ("gemm", 10, 2000.0)}
RECORDED = "GPU idle 23 %, profiled "


@pytest.mark.parametrize(
    ("idle_us", "wall_us", "devices", "words"),
    [
        # Per step 1000 us busy; 1098.9 us a call unprofiled, 1300 us recorded.
        (600, 1098.9, 1, "GPU idle 9 % (profiled: 23 %, profiler overhead 1.18×)"),
        (200, 1375.0, 1, "GPU idle 27 % (profiled: 9 %, profiler overhead 0.80×)"),
        (600, None, 1, f"{RECORDED}(no unprofiled times)"),
        (600, 1098.9, 2, f"{RECORDED}(the window is not one call on one GPU)"),
        (600, 500.0, 1, f"{RECORDED}(GPU busy longer than an unprofiled call)"),
    ],
)
def test_true_idle_time_stands_beside_the_trace_s_or_why_it_is_not_known(
    idle_us: float, wall_us: float | None, devices: int, words: str
) -> None:
    form = make_form(wall_us=(wall_us,) * 10) if wall_us else None
    assert idle_sentence(make_side("eager", make_analysis(WORK, idle_us=idle_us, devices=devices), form)) == words


def test_limits_are_told_of_both_sides_and_not_of_one_without_a_gpu() -> None:
    told = limit_sentences(timed_comparison())
    assert [sentence.split(":")[0] for sentence in told] == ["eager", "compiled"]
    assert all(sentence.endswith(".") for sentence in told)
    assert idle_sentence(make_side("eager", make_cpu_analysis(), make_form())) is None
    assert limit_sentences(cpu_comparison()) == ()
    bound = Bound("launch-bound", "unprofiled", {"launch": 59.0, "compute": 41.0, "copy": 0.0}, None)
    side = timed_comparison().a
    assert "). Launch-bound: 59 % of the call" in limit_sentence(replace(side, bound=bound))
    assert "). Bottleneck unknown: 59 %" in limit_sentence(replace(side, bound=replace(bound, kind=None)))
