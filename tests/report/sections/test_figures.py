"""Figures of two sides, with the memory traffic that is estimated of them."""

from msgspec.structs import replace
from tests.report.conftest import bare_comparison, timed_comparison

from tracekit.model.comparison import Comparison, GroupMember, KernelGroup
from tracekit.model.sequence import Rates, Traffic, TrafficTotal
from tracekit.report.sections.figures import comparison_figures
from tracekit.report.sections.groups import matmul_table

GIB = 2**30
FUSED = KernelGroup(
    *("fused", "x38: 3 kernels -> 1 Triton (add)", "provenance"),
    *((GroupMember("add", 114, 300.0),), (GroupMember("triton_poi_fused_add_0", 38, 100.0),)),
    *(-76, -200.0, ("blocks.*.norm",), 38),
    traffic=Traffic(3 * GIB, 1 * GIB, 0, 0),
    rates=Rates(GIB / 38, None, 3145.728, None, 0.65536, None),
)
MATMUL = replace(
    FUSED, kind="unchanged", label="nvjet", rates=Rates(None, 2e11, None, 800.0, None, 0.8085, "compute"), traffic=None
)
GONE = replace(FUSED, kind="eliminated", label="1 kernel, gone", b=(), traffic=Traffic(GIB, 0, 0, 0))
UNKNOWN = replace(FUSED, traffic=Traffic(3 * GIB, GIB, 0, 2), rates=None)


def with_groups(*groups: KernelGroup, total: TrafficTotal | None = None) -> Comparison:
    return replace(timed_comparison(), groups=groups, traffic=total)


def traffic_cells(comparison: Comparison) -> tuple[object, ...] | None:
    return next(
        (row[1:] for row in comparison_figures(comparison).rows if str(row[0]).startswith("Memory traffic")), None
    )


def test_the_overview_tells_what_traffic_was_removed_and_of_how_much_it_is_known() -> None:
    known = with_groups(FUSED, total=TrafficTotal(4 * GIB, 1 * GIB, 0.69, 0.96))
    assert traffic_cells(known) == ("4.00 GiB", "1.00 GiB", "\N{MINUS SIGN}3.00 GiB (\N{MINUS SIGN}75 %)")
    assert "69 % of A's GPU time and 96 % of B's" in comparison_figures(known).note
    all_known = with_groups(FUSED, total=TrafficTotal(4 * GIB, 5 * GIB, 1, 1))
    assert "GPU time" not in comparison_figures(all_known).note
    assert (traffic_cells(all_known) or ())[2] == "+1.00 GiB (+25 %)"
    assert traffic_cells(bare_comparison()) is None
    assert "traffic" not in comparison_figures(bare_comparison()).note


def test_matmuls_tell_their_share_of_the_peak_the_longest_first() -> None:
    longer = replace(MATMUL, label="longer", b=(GroupMember("longer", 1, 500.0),))
    table, listed = matmul_table(with_groups(FUSED, MATMUL, longer)), matmul_table(with_groups(*[MATMUL] * 11))
    assert [each[0] for each in table.rows] == ["longer", "nvjet"]
    assert table.rows[1][2:] == ("compute", "100.0 µs", "200.0 GFLOP", "800.0 TFLOP/s (80.8 %)", "—")
    assert matmul_table(with_groups(FUSED)) is None
    assert len(listed.rows) == 8
    assert "3 smaller groups are not listed" in listed.note
