import math
from unittest.mock import Mock

import numpy as np
from msgspec.structs import replace
from tests.report.conftest import cpu_comparison, matched_comparison, timed_comparison
from tests.report.showing import comparison_page, unpacked

from tracekit.model.comparison import Comparison, GroupMember, KernelGroup
from tracekit.model.provenance import KernelSources, SourceLines
from tracekit.model.sequence import Rates, Traffic
from tracekit.model.timeline import Bars, Label, StepTimeline
from tracekit.model.waterfall import Waterfall, WaterfallPart
from tracekit.numbers import duration_change
from tracekit.report.sections import groups as section
from tracekit.report.sections import headline, kernels
from tracekit.report.sections.groups import _group_row, distinct_places, every_group, group_place
from tracekit.report.sections.headline import part_labels
from tracekit.report.sections.kernels import bytes_of
from tracekit.statements.evidence import OtherOperator


def test_every_group_has_a_row_whose_figures_are_its_own():
    comparison = matched_comparison()
    told = every_group(comparison)
    assert [row.number for row in told.rows] == list(range(len(comparison.groups)))
    assert "are not listed" not in told.note
    change = math.fsum(row.figures[-1].value for row in told.rows)
    assert math.isclose(change, math.fsum(group.delta_us for group in comparison.groups))
    attention = told.rows[0]
    assert attention.words == ("defused", "anchors")
    assert [each.text for each in attention.figures] == ["24", "84", "76.1 µs", "258.2 µs", "+182.1 µs"]
    assert {member.letter for member in attention.members} == {"A", "B"}


def test_what_has_no_row_is_summed_up(monkeypatch):
    comparison = timed_comparison()
    monkeypatch.setattr(section, "MOST_ROWS", 1)
    told = every_group(comparison)
    assert len(told.rows) == 1
    assert told.note.endswith(" 3 more groups with smaller changes, +6.00 µs in all, are not listed.")


def large_groups(number: int) -> tuple[KernelGroup, ...]:
    """Each with kernels of long names, many modules and long evidence."""
    members = tuple(GroupMember(f"{i}<&>" + "k" * 196, 1.0, 1.0) for i in range(30))
    evidence = OtherOperator("product", before="e<" * 1250, after="e<" * 1250)
    groups = []
    for at in range(number):
        where = tuple(f"model.layers.{at}.mlp.{j}." + "m" * 100 for j in range(50))
        change = (0.0, -float(number - at), where)
        group = KernelGroup("substituted", f"exchanged {at} " + "y" * 200, "anchors", members, members, *change)
        groups.append(replace(group, evidence=(evidence,) * 12, a_at=(at,), b_at=(at,)))
    return tuple(groups)


def test_a_page_of_large_groups_stays_small_and_says_what_it_leaves_out():
    comparison = replace(timed_comparison(), groups=large_groups(500))
    told = every_group(comparison)
    assert 50 < len(told.rows) < 400
    left_out = math.fsum(group.delta_us for group in comparison.groups[len(told.rows) :])
    assert f" {500 - len(told.rows):,} more groups with smaller changes, {duration_change(left_out)}" in told.note
    assert all(len(each) == 500 and each.endswith("…") for each in told.rows[0].evidence)
    assert len(told.rows[0].evidence) == 8
    page = comparison_page(large_timelines(comparison))
    assert len(page.encode()) < 3_300_000
    assert "more groups with smaller changes" in page and "events, the shortest, are not drawn" in page


def large_timelines(comparison: Comparison) -> Comparison:
    """As many bars as a recording may have, none like another."""
    number, random = 40_000, np.random.default_rng(0)
    starts, durations = np.cumsum(random.exponential(10.0, number)), random.exponential(5.0, number)
    bars = Bars(tuple(starts.tolist()), tuple(durations.tolist()), tuple(range(number)), (0,) * number, 0)
    labels = tuple(Label(f"kernel<{at}>" + "n" * 100, "pointwise") for at in range(number))
    timeline = StepTimeline(0, 4e5, 0, 0, (7,), labels, bars, tuple(range(number)), bars, bars)
    return replace(comparison, a=replace(comparison.a, timeline=timeline), b=replace(comparison.b, timeline=timeline))


def test_a_row_is_written_about_as_long_as_it_is_counted():
    rows = [_group_row(at, group, "place", {}, {}) for at, group in enumerate(large_groups(20))]
    pages = [comparison_page(replace(timed_comparison(), groups=large_groups(n))) for n in (1, 20)]
    few, many = (len(f"{page}{unpacked(page)}".encode()) for page in pages)
    written = many - few
    assert 0.8 * written < sum(map(bytes_of, rows[1:])) < 1.3 * written


def test_the_words_that_occur_are_explained():
    told = every_group(timed_comparison())
    legends = {title: list(words) for title, words in told.legends}
    assert legends == {"Change kind": ["unchanged", "fused"], "Matched by": ["names"]}
    assert every_group(cpu_comparison()) is None


GROUP = KernelGroup("fused", "6 kernels -> 1 Triton", "provenance", (), (), -5, -10.0, ())


def test_a_row_opens_to_lines_rates_and_the_code_of_its_kernels():
    rates = Rates(2e6, 4e9, 1_000.0, 8.0, 0.25, 0.5)
    members = tuple(GroupMember(name, 1.0, 5.0) for name in ("triton_add_0", "triton_mul_1"))
    group = replace(GROUP, b=members, where=("m", "m.py:7", "lib.py:1"), sizes="2x3", rates=rates)
    traffic = Traffic(2048.0, 1024.0, 0, 0)
    other = replace(GROUP, b=members[:1])
    source = "import triton\n\n@triton.jit\ndef triton_add_0():\n\tpass"
    sources = KernelSources(1, "2.13.0", {"triton_add_0": (source, f"{source} # of another graph"), "unused": ("x",)})
    comparison = timed_comparison()
    b = replace(comparison.b, kernel_sources=sources, code={"m.py:7": SourceLines(6, 7, ("a", "\tb", "c"), True)})
    told = every_group(replace(comparison, b=b, groups=(replace(group, traffic=traffic), other)))
    row, second = told.rows
    assert [each.lines for each in told.code] == [
        ("@triton.jit", "def triton_add_0():", "        pass"),
        ("@triton.jit", "def triton_add_0():", "        pass # of another graph"),
    ]
    assert row.code == second.code == ("triton-0", "triton-1")
    (excerpt,) = row.excerpts
    assert (excerpt.first, excerpt.marked, excerpt.lines) == (6, 7, ("a", "        b", "c"))
    assert "changed since the run" in excerpt.title
    facts = " ".join(text for _, text in row.facts)
    assert all(each in facts for each in ("2x3", "25.0 %", "50.0 %", "2.00 KiB", "1.00 KiB"))
    assert (second.facts, second.excerpts) == ((), ())


def test_code_finds_room_in_the_order_of_the_groups(monkeypatch):
    monkeypatch.setattr(kernels, "MOST_CODE_BYTES", 50)
    side = replace(timed_comparison().b, kernel_sources=KernelSources(1, "", {n: (n * 20,) for n in "abc"}))
    found, ids = kernels.kernel_code((side,), "bacb")
    assert ids == {"b": ("triton-0",), "a": ("triton-1",)} and [each.name for each in found] == ["b", "a"]


def at(*where: str, sizes: str = "") -> KernelGroup:
    return replace(GROUP, where=where, sizes=sizes)


def test_a_group_is_placed_by_its_innermost_modules_else_by_its_line():
    assert group_place(at("blocks.*", "blocks.*.norm2", "model.py:12")) == "blocks.*.norm2"
    assert group_place(at("blocks.*.attn.norm_q", "blocks.*.attn.norm_k", "blocks.*.attn")) == (
        "blocks.*.attn.norm_q, .norm_k"
    )
    assert group_place(at("a.x", "b.y", "c.z", "d.w", "e.v")) == "a.x, b.y, c.z, 2 more"
    assert group_place(at("model.py:12", "model.py:14")) == "model.py:12"
    assert group_place(at()) == ""
    # A module whose name begins like another's is not inside it.
    assert group_place(at("blocks.*.norm1", "blocks.*.norm1_context")) == "blocks.*.norm1, .norm1_context"


def of_parts(*groups: KernelGroup) -> Comparison:
    parts = (*(WaterfallPart("gpu", each.label, each.delta_us) for each in groups), WaterfallPart("idle", "gc", 0.0))
    return replace(timed_comparison(), groups=groups, waterfall=Waterfall("trace", 10.0, 4.0, parts, 0.0))


def test_parts_that_are_called_alike_are_followed_by_their_modules():
    told = (("2 -> 1", "a.norm1", -3.0), ("2 -> 1", "a.norm2", -2.0), ("3 -> 1", "b", -1.0))
    groups = (replace(GROUP, label=label, delta_us=us, where=(place,)) for label, place, us in told)
    alike = ("GPU: 2 -> 1, a.norm1", "GPU: 2 -> 1, a.norm2")
    assert part_labels(of_parts(*groups)) == (*alike, "GPU: 3 -> 1", "idle: garbage collection")


def test_places_are_told_apart_once_however_many_parts_are_called_alike(monkeypatch):
    asked = Mock(wraps=distinct_places)
    monkeypatch.setattr(headline, "distinct_places", asked)
    groups = tuple(replace(GROUP, label="2 -> 1", delta_us=-float(at)) for at in range(8))
    assert part_labels(of_parts(*groups))[7] == "GPU: 2 -> 1, 8 of 8 alike"
    # Where no label is repeated nobody asks.
    assert part_labels(of_parts(groups[0]))[0] == "GPU: 2 -> 1"
    asked.assert_called_once()
