"""Blocks of real models, matched by hand: the kernels of both sides were read one by one in launch order, with their
operators and shapes, and put together by what they compute and what they read.

Positions are those of activities in launch order over the whole recording.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.traces import recording

from tracekit.analysis import analyze
from tracekit.analysis.sequence import list_work
from tracekit.comparison.matching.alignment import align
from tracekit.comparison.matching.cells import find_cells, lend_operators, why_no_provenance
from tracekit.comparison.matching.coverage import measure_coverage
from tracekit.comparison.matching.groups import group_kernels
from tracekit.comparison.matching.operators import without_number
from tracekit.comparison.matching.pairing import Cell
from tracekit.model.comparison import Comparison, GroupMember, KernelGroup, Side
from tracekit.model.sequence import Activity, Sequence
from tracekit.statements.evidence import AttentionLost, SinglePrecision
from tracekit.tracefile.read import read_trace

Block = dict[tuple[int, ...], tuple[int, ...]]


@cache
def side_of(name: str, lender: str | None = None) -> Side:
    if lender is not None:
        bare = side_of(name)
        return replace(bare, sequence=lend_operators(bare.sequence, work_of(lender), "lent"))
    trace = read_trace(recording(name), shapes=True)
    return Side(name, name, analyze(trace), None, None, None, sequence=list_work(trace))


def work_of(name: str, lender: str | None = None) -> Sequence:
    return side_of(name, lender).sequence


@cache
def cells_of(a: str, b: str, lender: str | None = None) -> tuple[Cell, ...]:
    return align(work_of(a), work_of(b, lender))


@cache
def groups_of(a: str, b: str, lender: str | None = None) -> tuple[KernelGroup, ...]:
    return group_kernels(side_of(a), side_of(b, lender), cells_of(a, b, lender))


def to(begin: int, end: int) -> tuple[int, ...]:
    """Positions from `begin` to `end`, both among them."""
    return tuple(range(begin, end + 1))


#: The second of FLUX's 19 double blocks (without its first half, which hangs together with the first block): image
#: (1024 tokens) and text (512 tokens) each have products of their own and attend to each other.
FLUX_DOUBLE_BLOCK: Block = {
    (215,): (85,),  # image: output of attention
    (216,): (87,),  # text: output of attention
    to(217, 222): (86,),  # image: gate, residual, layer_norm, 1 + scale, scale, shift
    (223, 224): (90, 91),  # image: feed forward, a memset among it
    (225,): (92,),  # image: gelu
    (226,): (93,),
    (227, 228, *to(242, 245)): (94,),  # image: gate, residual; and the next block's layer_norm, scale, shift
    to(229, 234): (88,),  # text: gate, residual, layer_norm, 1 + scale, scale, shift
    (235,): (96,),  # text: feed forward
    (236,): (97,),  # text: gelu
    (237,): (98,),
    (238, 239, *to(248, 251)): (99,),  # text: gate, residual; and the next block's layer_norm, scale, shift
    (241,): (89,),  # image: modulation of the next block
    (247,): (95,),  # text: modulation of the next block
    (252,): (102,),  # image: queries, keys, values
    (253,): (107,),
    (254,): (111,),
    (255,): (100,),  # text: queries, keys, values
    (256,): (105,),
    (257,): (110,),
    (258, 260, 262): (101, 103, 104),  # queries: rms_norm of image and text, one behind the other
    (259, 261, 263): (106, 108, 109),  # keys: the same
    (264,): (113,),  # values: one behind the other
    to(265, 282): (112,),  # rotary embedding of queries and keys
    (283, 284): (114, 115),  # attention
}

#: One of FLUX's 38 single blocks. The compiled form does the feed forward after attention; the modulation's silu is
#: done for four blocks at once.
FLUX_SINGLE_BLOCK: Block = {
    (1787,): (753,),  # the block before: output
    (*to(1788, 1790), *to(1794, 1797)): (754,),  # its gate, residual, cat; layer_norm, 1 + scale, scale, shift
    (1671, 1711, 1751, 1791): (747,),  # silu of the modulation, of four blocks
    (1792, 1793): (748, 749),  # modulation, split along K
    (1798, 1799): (763, 764),  # feed forward, a memset among it
    (1800, 1826): (765,),  # gelu; behind attention, one behind the other
    (1801,): (755,),  # queries, keys, values
    (1802,): (756,),
    (1803,): (758,),
    to(1804, 1823): (757,),  # rms_norm and rotary embedding of queries and keys
    (1824, 1825): (759, 760),  # attention
    (1827,): (766,),  # output
}

#: The first of ViT's layers, with the patch embedding before it.
VIT_BLOCK: Block = {
    to(0, 5): to(0, 5),  # convolution with its layout kernels
    to(6, 9): (6, 7, 8),  # its bias, class token, position; layer_norm in three parts
    (10,): (9,),  # queries
    (11,): (10,),  # keys
    (12,): (15,),  # values
    (13, 14): (11, 12, 13, 14, 16, 17, 18),  # attention: two products in float32, softmax, four kernels for layouts
    (15,): (19,),
    (16, 17): (20,),  # residual, layer_norm
    (18,): (21,),
    (19,): (22,),  # gelu
    (20,): (23,),
    (21, 22): (24,),  # residual, layer_norm
}

#: A decoder layer of Qwen2.5-VL for one generated token.
QWEN_DECODER_LAYER: Block = {
    (0,): (0,),  # output of attention
    to(1, 9): (1,),  # residual, rms_norm
    (10,): (2,),  # gate
    (12,): (3,),  # up
    (11, 13): (4,),  # silu, mul
    (14, 15): (5, 6),  # down, split along K
    to(16, 24): (7,),  # residual, rms_norm
    (25,): (8,),  # queries
    (26,): (10,),  # keys
    (27,): (13,),  # values
    to(28, 32): (9,),  # rotary embedding of the queries
    to(33, 37): (11,),  # rotary embedding of the keys
    (38,): (12,),  # keys behind those of earlier tokens
    (39,): (14,),  # values behind those of earlier tokens
    (40,): (15, 16, 17),  # attention: keys and values are copied for every head first
}


@pytest.mark.parametrize(
    ("a", "b", "block"),
    [
        ("flux_eager", "flux_default", FLUX_DOUBLE_BLOCK),
        ("flux_eager", "flux_default", FLUX_SINGLE_BLOCK),
        ("vit_eager", "vit_default", VIT_BLOCK),
        ("qwen_layers_eager", "qwen_layers_default", QWEN_DECODER_LAYER),
    ],
    ids=["flux double block", "flux single block", "vit block", "qwen decoder layer"],
)
def test_kernels_of_a_block_belong_where_a_reader_puts_them(a: str, b: str, block: Block) -> None:
    found = {cell.a: cell.b for cell in cells_of(a, b)}
    assert {positions: found.get(positions) for positions in block} == block


def test_a_cuda_graph_with_lent_operators_is_matched_as_the_default_mode_is() -> None:
    graph = work_of("flux_reduce-overhead", "flux_default")
    assert graph.operators == "lent"
    assert sum(each.operator is None for each in graph.activities) < 0.01 * len(graph.activities)
    cells = cells_of("flux_eager", "flux_reduce-overhead", "flux_default")
    names = [each.name for each in work_of("flux_default").activities]
    expected = {positions: [names[at] for at in others] for positions, others in FLUX_DOUBLE_BLOCK.items()}
    found = {cell.a: [graph.activities[at].name for at in cell.b] for cell in cells}
    assert {positions: found.get(positions) for positions in expected} == expected


def check_groups(side: Side, members: list[GroupMember]) -> None:
    """Against the recording itself: every name as often and as long as in the file."""
    counts, times = Counter[str](), Counter[str]()
    for each in members:
        counts[each.name] += each.count
        times[each.name] += each.total_us
    recorded = (*side.analysis.kernels.by_name, *side.analysis.copies.by_name)
    assert counts == pytest.approx({each.name: each.count / side.steps for each in recorded})
    assert times == pytest.approx({each.name: each.total_us / side.steps for each in recorded})


def check_kinds(groups: tuple[KernelGroup, ...]) -> None:
    """That no group is called what its kernels contradict."""
    for group in groups:
        a, b = _counts(group.a), _counts(group.b)
        assert (group.kind == "eliminated") == (not b and group.how != "unmatched"), group
        assert (group.kind == "added") == (not a and group.how != "unmatched"), group
        assert (group.kind == "unmatched") == (group.how == "unmatched"), group
        holds = {
            "unchanged": a == b,
            "fused": group.delta_count < 0 or any(each.name.startswith("triton_") for each in group.b),
            "defused": group.delta_count > 0,
            "substituted": bool(group.evidence),
        }
        assert holds.get(group.kind, True), group


def _counts(members: tuple[GroupMember, ...]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for each in members:
        counts[without_number(each.name)] += round(each.count)
    return counts


@pytest.mark.parametrize(
    ("a", "b", "lender", "least"),
    [
        ("flux_eager", "flux_default", None, 0.98),
        ("vit_eager", "vit_default", None, 0.95),
        ("flux_eager", "flux_reduce-overhead", "flux_default", 0.98),
        ("vit_eager", "vit_reduce-overhead", "vit_default", 0.95),
        ("vit_eager", "vit_reduce-overhead", None, 0.95),
        ("segformer_eager", "segformer_reduce-overhead", None, 0.95),
    ],
)
def test_nearly_all_gpu_time_is_matched_and_no_group_is_called_what_it_is_not(
    a: str, b: str, lender: str | None, least: float
) -> None:
    groups = groups_of(a, b, lender)
    check_groups(side_of(a), [each for group in groups for each in group.a])
    check_groups(side_of(b), [each for group in groups for each in group.b])
    check_kinds(groups)
    coverage = measure_coverage(groups)
    assert min(coverage.a_time_matched, coverage.b_time_matched) >= least


def test_what_resizes_a_segformer_s_features_is_found_under_the_names_of_its_parts() -> None:
    cells = cells_of("segformer_eager", "segformer_reduce-overhead")
    one, other = work_of("segformer_eager").activities, work_of("segformer_reduce-overhead").activities
    resized = [at for at, each in enumerate(one) if "upsample_bilinear2d" in each.name]
    partners = [other[j] for cell in cells if set(cell.a) & set(resized) for j in cell.b]
    assert len(resized) == 3
    assert len(partners) == 4
    assert all("__unsafe_index_add_arange_" in each.name for each in partners)
    assert {(cell.how, cell.exact) for cell in cells if set(cell.a) & set(resized)} == {("names", False)}


def test_vit_s_lost_attention_is_the_largest_change_and_says_what_it_became() -> None:
    group = groups_of("vit_eager", "vit_default")[0]
    assert (group.kind, group.repeats, group.delta_count) == ("defused", 24, 24 * (7 - 2))
    lost, single = group.evidence[:2]
    assert isinstance(lost, AttentionLost) and (lost.products, lost.other_kernels) == (2, 5)
    assert isinstance(single, SinglePrecision)


def test_names_alone_are_no_exact_match_and_lent_operators_are() -> None:
    bare, lent = (groups_of("vit_eager", "vit_reduce-overhead", each) for each in (None, "vit_default"))
    # What copies the inputs into the graph is new in B; names alone do not tell.
    for groups, how, inexact, new in ((bare, "names", True, "unmatched"), (lent, "anchors", False, "added")):
        assert {group.how for group in groups if group.kind != "unmatched"} == {how}
        assert (measure_coverage(groups).b_time_inexact > 0.9) == inexact
        assert [group.kind for group in groups if not group.a] == [new]


#: The share of GPU time, of A and of B, that alignment must put beside the same work as provenance does. Provenance is
#: no truth either: it lists kernels together that alignment tells apart, and may be wrong where it is not exact.
FLOORS = {
    "h100-qwen2.5-vl-decode": (0.915, 0.95),
    "h100-vit": (0.99, 0.99),
    "h100-vit-reduce-overhead": (0.99, 0.99),
}


Partners = dict[int, frozenset[int]]


def agreement(one: Partners, other: Partners, own: tuple[Activity, ...], far: tuple[Activity, ...]) -> float:
    """Of each activity's partners on the far side, the share of time that both have of what either has; the mean over
    all activities, by their time. 1 where both say that there is none."""
    agreed = 0.0
    for at, activity in enumerate(own):
        either, both = (
            sum(far[each].duration_us for each in some) for some in (one[at] | other[at], one[at] & other[at])
        )
        agreed += activity.duration_us * (both / either if either else 1.0)
    return agreed / sum(each.duration_us for each in own)


@pytest.mark.parametrize("run", FLOORS)
def test_alignment_says_mostly_what_provenance_says(run: str, compared: Callable[[Path], Comparison]) -> None:
    a, b = (getattr(compared(Path("traces", run)), side) for side in ("a", "b"))
    told, _ = find_cells(a, b)
    assert why_no_provenance(a, b) is None
    found = align(a.sequence, b.sequence)
    one, other = a.sequence.activities, b.sequence.activities
    of_a = ({at: frozenset(cell.b) for cell in cells for at in cell.a} for cells in (told, found))
    of_b = ({at: frozenset(cell.a) for cell in cells for at in cell.b} for cells in (told, found))
    shares = agreement(*of_a, one, other), agreement(*of_b, other, one)
    assert min(share - floor for share, floor in zip(shares, FLOORS[run], strict=True)) >= 0, shares
