"""Blocks of real models, matched by hand: the kernels of both sides were read one by one in launch order, with their
operators and shapes, and put together by what they compute and what they read.

Positions are those of activities in launch order over the whole recording.
"""

from __future__ import annotations

from functools import cache

import pytest
from tests.traces import DATA

from tracekit.analysis.sequence import list_work
from tracekit.comparison.matching import Cell, align, check_partition, lend_operators
from tracekit.model.sequence import Sequence
from tracekit.tracefile import read_trace

Block = dict[tuple[int, ...], tuple[int, ...]]


@cache
def work_of(name: str) -> Sequence:
    return list_work(read_trace(DATA / f"{name}.json.gz", shapes=True))


@cache
def cells_of(a: str, b: str) -> tuple[Cell, ...]:
    return align(work_of(a), work_of(b))


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


def test_the_compiled_side_first_finds_the_same() -> None:
    found = {cell.b: cell.a for cell in cells_of("vit_default", "vit_eager")}
    assert {positions: found.get(positions) for positions in VIT_BLOCK} == VIT_BLOCK


def test_a_cuda_graph_with_lent_operators_is_matched_as_the_default_mode_is() -> None:
    graph = lend_operators(work_of("flux_reduce-overhead"), work_of("flux_default"), "lent")
    assert graph.operators == "lent"
    assert sum(each.operator is None for each in graph.activities) < 0.01 * len(graph.activities)
    cells = align(work_of("flux_eager"), graph)
    names = [each.name for each in work_of("flux_default").activities]
    expected = {positions: [names[at] for at in others] for positions, others in FLUX_DOUBLE_BLOCK.items()}
    found = {cell.a: [graph.activities[at].name for at in cell.b] for cell in cells}
    assert {positions: found.get(positions) for positions in expected} == expected


@pytest.mark.parametrize("name", ["vit_eager", "vit_default", "vit_reduce-overhead", "flux_default"])
def test_a_recording_against_itself_is_unchanged_kernel_by_kernel(name: str) -> None:
    work = work_of(name)
    cells = align(work, work)
    check_partition(cells, len(work.activities), len(work.activities))
    assert all(cell.a == cell.b for cell in cells)


def test_the_modes_of_one_model_do_the_same_but_for_copying_the_inputs_in() -> None:
    cells = align(work_of("vit_default"), work_of("vit_reduce-overhead"))
    alone = [cell for cell in cells if not cell.a or not cell.b]
    names = [work_of("vit_reduce-overhead").activities[at].name for cell in alone for at in cell.b]
    assert all("multi_tensor_apply" in name for name in names) and len(names) == 2
