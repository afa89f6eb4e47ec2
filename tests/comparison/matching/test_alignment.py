"""What a library call does itself on one side, and other kernels do on the other."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.fuzzing import fuzzed
from tests.sequences import attention, batched, eager, make_activity, make_sequence, product, triton

from tracekit.comparison.matching import common_subsequence as subsequence
from tracekit.comparison.matching.alignment import align
from tracekit.comparison.matching.cells import lacks_operators, lend_operators
from tracekit.comparison.matching.common_subsequence import common_subsequence, places_in_table, same_launches
from tracekit.comparison.matching.groups import group_by_cells
from tracekit.comparison.matching.operators import is_listed
from tracekit.comparison.matching.pairing import UnionFind
from tracekit.model.comparison import KernelGroup
from tracekit.model.sequence import Activity, Operator


def told(a: list[Activity], b: list[Activity]) -> dict[tuple[int, ...], tuple[tuple[int, ...], str, bool]]:
    return {cell.a: (cell.b, cell.how, cell.exact) for cell in align(make_sequence(a), make_sequence(b))}


SPLIT = product(64, 64, 4096, call=0)
WITH_BIAS = product(64, 32, 16, call=0)
WITHOUT = replace(WITH_BIAS.operator, name="aten::mm", dims=((64, 16), (16, 32)))
ATTENDING = [product(64, 64, 64, call=0), attention(8, 16, 32, call=1), product(16, 64, 64, call=2)]
BY_PRODUCTS = [
    product(64, 64, 64, call=0),
    triton("mul_transpose", (8 * 16, 32), call=1),
    batched(8, 16, 16, 32, call=2),
    triton("_safe_softmax", (8, 16, 16), call=3),
    batched(8, 16, 32, 16, call=4),
    product(16, 64, 64, call=5),
]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # Products of other sizes may change places.
        (
            [product(64, 64, 64, call=0), product(32, 64, 64, call=1), product(16, 64, 64, call=2)],
            [product(32, 64, 64, call=0), product(64, 64, 64, call=1), product(16, 64, 64, call=2)],
            {(0,): (1,), (1,): (0,), (2,): (2,)},
        ),
        # A product is the same with and without a bias of its own, and with the reduction of its parts.
        ([WITH_BIAS], [replace(WITH_BIAS, operator=WITHOUT, within=("aten::mm",))], {(0,): (0,)}),
        ([SPLIT, replace(SPLIT, name="splitKreduce_kernel")], [SPLIT], {(0, 1): (0,)}),
        # Work that moved over a product is found behind it.
        (
            [product(64, 64, 64, call=0), eager("tanh", (64, 64), call=1), product(64, 128, 64, call=2)],
            [product(64, 64, 64, call=0), product(64, 128, 64, call=1), triton("tanh", (64, 64), call=2)],
            {(0,): (0,), (1,): (2,), (2,): (1,)},
        ),
        # Attention made of two products is found with its softmax.
        (ATTENDING, BY_PRODUCTS, {(0,): (0,), (1,): (1, 2, 3, 4), (2,): (5,)}),
        (BY_PRODUCTS, ATTENDING, {(0,): (0,), (1, 2, 3, 4): (1,), (5,): (2,)}),
        # What stands between two products is divided by the names of Triton kernels.
        (
            [
                *(product(64, 64, 64, call=0), eager("add", (64, 64), call=1), eager("gelu", (64, 64), call=2)),
                *(product(64, 128, 64, call=3), eager("mul", (64, 128), call=4), eager("silu", (64, 128), call=5)),
            ],
            [
                *(product(64, 64, 64, call=0, within="addmm"), triton("add_gelu", (64, 64), call=1)),
                *(product(64, 128, 64, call=2, within="addmm"), triton("mul_silu_view", (64, 128), call=3)),
            ],
            {(0,): (0,), (1, 2): (1,), (3,): (2,), (4, 5): (3,)},
        ),
    ],
)
def test_the_same_work_is_found_on_the_other_side(a, b, expected) -> None:
    assert {cell.a: cell.b for cell in align(make_sequence(a), make_sequence(b))} == expected


FIRST, MIDDLE, LAST = product(64, 64, 64, call=0), product(32, 64, 64, call=2), product(16, 64, 64, call=9)
RESIZED = "_to_copy__unsafe_index_add_arange_clamp_mul_sub_view"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # Beside a kernel that has some of the parts, and for other work.
        (
            [eager("mul", (64, 64), call=1), eager("upsample_bilinear2d", (1, 8, 16, 16), call=2)],
            [triton("_to_copy_add_mul_sub", (64, 64), call=1), triton(RESIZED, (1, 8, 16, 16), (1, 8, 32, 32), call=2)],
            {(1,): (1,), (2,): (2,)},
        ),
        # The operator's own name is as good.
        (
            [eager("upsample_bilinear2d", (1, 8, 16, 16), call=1)],
            [triton("add_upsample_bilinear2d", (1, 8, 16, 16), call=1)],
            {(1,): (1,)},
        ),
        # A kernel that lacks one of the parts (clamp), or has no tensor of such a size, is another's.
        (
            [eager("upsample_bilinear2d", (1, 8, 16, 16), call=1)],
            [triton("_to_copy__unsafe_index_add_arange_mul_sub", (1, 8, 16, 16), call=1), product(8, 8, 8, call=2)],
            {(1,): ()},
        ),
        (
            [eager("upsample_bilinear2d", (1, 8, 16, 16), call=1)],
            [triton(RESIZED, (1, 7, 13, 13), call=1), product(8, 8, 8, call=2)],
            {(1,): ()},
        ),
    ],
)
def test_an_operator_is_found_in_the_kernel_that_lists_all_it_is_decomposed_into(a, b, expected) -> None:
    found = told([FIRST, *a, LAST], [FIRST, *b, LAST])
    assert {cell: partners for cell, (partners, *_) in found.items() if cell in expected} == expected
    assert all(exact for _, _, exact in found.values())


def test_a_name_that_ends_another_one_is_not_listed() -> None:
    assert not is_listed("index", f"_{RESIZED}_")
    assert is_listed("index", "_add_index_mul_")
    assert is_listed("_unsafe_index", f"_{RESIZED}_")


def test_kernels_that_resize_are_told_by_their_names_where_no_operator_is_known() -> None:
    a = Activity("void at::native::(anonymous namespace)::upsample_bilinear2d_out_frame<float>", "pointwise", 9.0, None)
    b = without_operators([triton("_to_copy_add_mul_sub", (8,), call=1), triton(RESIZED, (8,), call=2)])
    found = align(make_sequence([a], "none"), make_sequence(b, "none"))
    assert [(cell.b, cell.how, cell.exact) for cell in found if cell.a] == [((1,), "names", False)]


def test_a_second_kernel_of_an_operator_that_was_decomposed_joins_the_first_and_that_is_not_sure() -> None:
    a = [FIRST, eager("upsample_bilinear2d", (1, 8, 16, 16), call=1), LAST]
    b = [FIRST, *(triton(RESIZED, (1, 8, 16, 16), (1, 8, 32, size), call=size) for size in (16, 32)), LAST]
    found = told(a, [b[0], b[1], replace(b[2], name=b[2].name.replace("view", "cat")), b[3]])
    assert found[1,] == ((1, 2), "anchors", False)


def test_without_operators_what_lays_a_convolution_s_inputs_out_belongs_to_it_and_that_is_not_sure() -> None:
    convolution = make_activity("implicit_gemm_fprop", "convolution", "conv2d>convolution", ((1, 8, 9, 9),), 1)
    b = [triton("convolution_transpose", (8,), call=1), convolution, triton("mystery", (8,), call=2)]
    found = align(make_sequence([convolution]), make_sequence(without_operators(b), "none"))
    assert [(cell.a, cell.b, cell.how, cell.exact) for cell in found] == [
        ((0,), (0, 1), "names", False),
        ((), (2,), "unmatched", True),
    ]


def test_without_operators_a_product_that_does_a_convolution_is_the_other_side_s_convolution() -> None:
    convolution = make_activity("implicit_gemm_fprop", "convolution", "conv2d>convolution", ((1, 8, 9, 9),), 2)
    by_product = replace(convolution, name="nvjet_a", family="gemm")
    a, b = [product(64, 64, 64, call=1), by_product], without_operators([product(64, 64, 64, call=1), convolution])
    assert [(cell.a, cell.b) for cell in align(make_sequence(a), make_sequence(b, "none"))] == [
        ((0,), (0,)),
        ((1,), (1,)),
    ]


def test_a_kernel_between_matched_ones_that_nothing_on_the_other_side_could_do_is_gone() -> None:
    a, b = [FIRST, eager("erfinv", (64, 64), call=1), LAST], [FIRST, LAST]
    assert told(a, b)[1,] == ((), "anchors", True)
    assert told(b, a)[()] == ((1,), "anchors", True)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        # Its neighbour has no partner either: what is around it is not known.
        ([FIRST, eager("erfinv", (64, 64), call=1), product(8, 8, 8, call=2)], [FIRST, LAST]),
        # A kernel nearby names the operator, though it knows no tensor of that size.
        (
            [FIRST, eager("erfinv", (7,), call=1), MIDDLE, eager("add", (64, 64), call=3), LAST],
            [FIRST, MIDDLE, triton("add_erfinv", (64, 64), call=3), LAST],
        ),
        # Something is left on the other side: it may be that.
        (
            [FIRST, make_activity("Memcpy DtoD", "memcpy", "clone>copy_", ((64, 64),), 1), LAST],
            [FIRST, triton("zeros_like", (64, 64), call=1), LAST],
        ),
        # No operator is known: there is nothing that another kernel could name.
        ([FIRST, Activity("mystery", "other", 10.0, None), LAST], [FIRST, LAST]),
        # Another kernel attends: it may take the inputs as they lay before.
        (
            [FIRST, eager("clone", (64, 64), call=1), attention(8, 16, 32, call=2), LAST],
            [FIRST, replace(attention(8, 16, 32, call=2), name="flash_v3"), LAST],
        ),
        # A product further on now adds, though its size is another.
        (
            [FIRST, eager("add", (64, 64), call=1), MIDDLE, product(8, 8, 8, call=3, within="mm", kernel="k"), LAST],
            [FIRST, MIDDLE, product(8, 8, 8, call=3, within="addmm", kernel="k"), LAST],
        ),
        # A product does not vanish because nobody has its size.
        ([FIRST, product(4, 4, 4, call=1), LAST], [FIRST, LAST]),
    ],
)
def test_want_of_a_partner_alone_is_no_evidence_that_work_is_gone(a: list[Activity], b: list[Activity]) -> None:
    assert told(a, b)[1,] == ((), "unmatched", True)


def test_work_of_a_library_call_that_has_no_partner_is_unmatched_with_it() -> None:
    bias = make_activity("vectorized_add", "pointwise", "linear>add_", ((8, 8),), 1)
    assert told([FIRST, product(8, 8, 8, call=1), bias, LAST], [FIRST, LAST])[1, 2] == ((), "unmatched", True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (eager("erfinv", (64, 64), call=1), triton("mystery", (64, 64), call=1)),
        (product(60, 64, 64, call=1), product(63, 64, 64, call=1)),
    ],
)
def test_what_is_left_of_both_sides_in_one_place_is_matched_by_elimination_and_says_so(one, other) -> None:
    exact = {cell: exact for cell, (_, _, exact) in told([FIRST, one, LAST], [FIRST, other, LAST]).items()}
    assert exact == {(0,): True, (1,): False, (2,): True}


def square(kernel: str, call: int) -> Activity:
    """Of the size of `FIRST`."""
    return product(64, 64, 64, call=call, kernel=kernel)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # They changed places.
        ("xy", "yx", {(0,): (1,), (1,): (0,)}),
        ("xyz", "yzx", {(0,): (2,), (1,): (0,), (2,): (1,)}),
        # One more of their size, at either side.
        ("x", "zx", {(0,): (1,)}),
        ("zx", "x", {(0,): (), (1,): (0,)}),
        ("xxy", "zxxy", {(0,): (1,), (1,): (2,), (2,): (3,)}),
    ],
)
def test_of_products_of_one_size_those_of_equal_kernels_are_paired_first(a: str, b: str, expected) -> None:
    found = told(*([square(kernel, call) for call, kernel in enumerate(side)] for side in (a, b)))
    assert {at: partners for at, (partners, *_) in found.items() if at} == expected
    assert all(exact for _, _, exact in found.values())


@pytest.mark.parametrize(
    ("a", "b", "exact"),
    [
        # All of a size became another kernel: whichever is whose, it is the same.
        ("xx", "yy", True),
        ("xxz", "yyz", True),
        # Which is whose, or which of two is gone, nobody can tell.
        ("xy", "zw", False),
        ("xx", "yz", False),
        ("xx", "y", False),
        ("x", "yz", False),
    ],
)
def test_products_of_one_size_that_kernels_do_not_tell_apart_are_never_paired_for_certain(
    a: str, b: str, exact: bool
) -> None:
    found = told(*([square(kernel, call) for call, kernel in enumerate(side)] for side in (a, b)))
    paired = {at: sure for at, (partners, _, sure) in found.items() if partners and at and a[at[0]] != b[partners[0]]}
    assert paired and set(paired.values()) == {exact}


def test_a_product_that_is_gone_and_another_of_its_size_elsewhere_are_not_paired_for_certain() -> None:
    found = told([square("x", 0), MIDDLE, LAST], [MIDDLE, LAST, square("y", 11)])
    assert found == {(0,): ((2,), "anchors", False), (1,): ((0,), "anchors", True), (2,): ((1,), "anchors", True)}
    # The very same that moved is the same for certain.
    assert told([square("x", 0), MIDDLE, LAST], [MIDDLE, LAST, square("x", 11)])[0,] == ((2,), "anchors", True)


def test_equal_products_told_by_names_alone_may_be_paired_wrongly_and_that_is_said() -> None:
    """Without operators two products of different work that run the same kernel cannot be told apart."""
    small, large = product(16, 64, 64, call=0), product(64, 64, 4096, call=1)
    a, b = make_sequence([small, large]), make_sequence(without_operators([large, small]), "none")
    found = align(a, b)
    assert [(cell.a, cell.b) for cell in found] == [((0,), (0,)), ((1,), (1,))]
    assert {(cell.how, cell.exact) for cell in found} == {("names", False)}
    assert {(cell.a, cell.b): cell.exact for cell in align(a, make_sequence([large, small]))} == {
        ((0,), (1,)): True,
        ((1,), (0,)): True,
    }


def test_by_names_alone_nothing_is_said_to_be_gone() -> None:
    a = [FIRST, eager("erfinv", (64, 64), call=1), LAST]
    found = align(make_sequence(a), make_sequence(without_operators([FIRST, LAST]), "none"))
    assert [(cell.b, cell.how) for cell in found if cell.a == (1,)] == [((), "unmatched")]


def test_without_operators_on_either_side_pytorch_s_kernels_are_told_by_their_names() -> None:
    eager_names = {
        "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>": "pointwise",
        "vectorized_layer_norm_kernel<float>": "normalization",
        "nvjet_a": "gemm",
        "GeluCUDAKernelImpl": "pointwise",
        "nvjet_b": "gemm",
    }
    fused_names = {
        "triton_per_fused_add_native_layer_norm_0": "triton",
        "nvjet_a": "gemm",
        "triton_poi_fused_gelu_1": "triton",
        "nvjet_b": "gemm",
    }
    a, b = (
        make_sequence([Activity(name, family, 10.0, None) for name, family in names.items()], "none")
        for names in (eager_names, fused_names)
    )
    assert {cell.a: cell.b for cell in align(a, b)} == {(0, 1): (0,), (2,): (1,), (3,): (2,), (4,): (3,)}


RICH = make_sequence([product(64, 64, 64, call=0), eager("add", (8,), call=1)])


def test_operators_are_lent_by_position_where_kernels_have_the_same_names() -> None:
    bare = without_operators(RICH.activities)
    light = make_sequence(bare, "none")
    assert lacks_operators(light) and not lacks_operators(RICH)
    lent = lend_operators(light, RICH, "rich")
    assert [each.operator for each in lent.activities] == [each.operator for each in RICH.activities]
    assert lent.operators == "rich"
    # A kernel that the lender lacks keeps no operator.
    light = make_sequence([bare[0], replace(bare[1], name="another"), bare[1]], "none")
    assert [each.operator is None for each in lend_operators(light, RICH, "lent").activities] == [False, True, False]
    # Several steps in one sequence borrow from one step.
    lent = lend_operators(make_sequence(bare * 3, "none", per_step=1 / 3), RICH, "rich")
    assert not lacks_operators(lent)
    assert len({each.call for each in lent.activities}) == 6


ACTIVITIES = st.one_of(
    st.builds(product, *[st.sampled_from((16, 32, 64))] * 3, call=st.integers(0, 9)),
    st.builds(batched, *[st.sampled_from((8, 16))] * 4, call=st.integers(0, 9)),
    st.builds(attention, st.just(8), st.sampled_from((8, 16)), st.just(16), call=st.integers(0, 9)),
    st.builds(
        eager, st.sampled_from(("add", "mul", "gelu", "to>_to_copy>copy_")), st.just((64, 64)), call=st.integers(0, 9)
    ),
    st.builds(
        triton,
        st.sampled_from(("add_mul", "gelu", "_to_copy_add", "_safe_softmax", "addmm_view")),
        st.just((64, 64)),
        call=st.integers(0, 9),
        number=st.integers(0, 3),
    ),
)
SEQUENCES = st.lists(ACTIVITIES, max_size=30)


def numbered(activities: list[Activity]) -> list[Activity]:
    """Each with a call of its own."""
    return [replace(each, call=at) for at, each in enumerate(activities)]


def without_operators(activities: list[Activity]) -> list[Activity]:
    return [replace(each, operator=None, within=(), call=None) for each in activities]


@fuzzed(40)
@given(SEQUENCES)
def test_any_sequence_against_itself_is_the_same_one_by_one(activities: list[Activity]) -> None:
    same = make_sequence(numbered(activities))
    assert all(cell.a == cell.b for cell in align(same, same))


@fuzzed(40)
@given(SEQUENCES, SEQUENCES, st.integers(1, 99))
def test_the_numbers_in_names_of_triton_kernels_say_nothing(a: list[Activity], b: list[Activity], more: int) -> None:
    a, b, renumbered = numbered(a), numbered(b), []
    for each in b:
        name = re.sub(r"^(triton_.*_)(\d+)$", lambda found: f"{found[1]}{int(found[2]) + more}", each.name)
        new = replace(each, name=name, operator=replace(each.operator, name=name), within=(name,))
        renumbered.append(each if name == each.name else new)
    assert align(make_sequence(a), make_sequence(b)) == align(make_sequence(a), make_sequence(renumbered))


def plain(call: int, kernel: str = "gemm") -> Activity:
    """A product of 64x64 elements that adds nothing."""
    operator = Operator("aten::mm", ((64, 32), (32, 64)), ("c10::BFloat16",) * 2)
    return replace(product(64, 64, 32, call=call, within="mm", kernel=kernel), operator=operator)


def adding(call: int, kernel: str = "gemm") -> Activity:
    return product(64, 64, 32, call=call, within="addmm", kernel=kernel)


def add(call: int, *shape: int) -> Activity:
    return eager("add", shape or (64, 64), (64,), call=call)


def second(a: list[Activity], b: list[Activity]) -> KernelGroup:
    """The group of A's second activity."""
    one, other = make_sequence(a), make_sequence(b)
    return next(group for group in group_by_cells(one, other, align(one, other)) if 1 in group.a_at)


@pytest.mark.parametrize("kernel", ["gemm", "gemm_bias"])
def test_a_product_and_what_was_added_to_it_are_fused_into_one_call_that_adds(kernel: str) -> None:
    a, b = [FIRST, plain(1), add(2), LAST], [FIRST, adding(1, kernel), LAST]
    assert told(a, b) == {(0,): ((0,), "anchors", True), (1, 2): ((1,), "anchors", True), (3,): ((2,), "anchors", True)}
    assert second(a, b).kind == "fused"
    assert second(b, a).kind == "defused"


def test_a_product_that_no_longer_adds_is_defused_with_the_triton_kernel_that_only_adds() -> None:
    a, b = [FIRST, adding(1), LAST], [FIRST, plain(1), triton("add", (64, 64), call=2), LAST]
    assert (second(a, b).kind, second(a, b).delta_count) == ("defused", 1)


def test_a_kernel_of_the_same_operator_that_names_its_epilogue_takes_the_activation_over() -> None:
    a = [FIRST, plain(1), eager("relu", (64, 64), call=2), LAST]
    assert told(a, [FIRST, plain(1, "gemm_relu"), LAST])[1, 2] == ((1,), "anchors", True)


def test_of_two_additions_the_first_is_the_call_s_and_that_is_not_sure() -> None:
    found = told([FIRST, plain(1), add(2), add(3), LAST], [FIRST, adding(1), LAST])
    assert found[1, 2] == ((1,), "anchors", False)
    assert found[3,] == ((), "unmatched", True)


@pytest.mark.parametrize("other", [eager("tanh", (64, 64), call=2), add(2, 7, 7)])
def test_work_that_the_call_does_not_do_or_of_another_size_is_not_put_to_it_nor_said_to_be_gone(other) -> None:
    found = told([FIRST, plain(1), other, LAST], [FIRST, adding(1), LAST])
    assert found[2,] == ((), "unmatched", True)
    assert found[1,] == ((1,), "anchors", True)


def test_things_hang_together_over_others_and_stand_in_the_order_they_were_named() -> None:
    together: UnionFind[str] = UnionFind()
    for some in (["d"], ["a", "b"], ["c", "e"], ["b", "c"], []):
        together.join(some)
    assert together.groups() == [["d"], ["a", "b", "c", "e"]]


LETTERS = st.lists(st.sampled_from("abcd"), max_size=25)


def longest(a: list[str], b: list[str]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def check(a: list[str], b: list[str], pairs: list[tuple[int, int]]) -> None:
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p < q and r < s for (p, r), (q, s) in pairwise(pairs))


@given(LETTERS, LETTERS)
def test_it_is_common_increasing_and_as_long_as_can_be(a: list[str], b: list[str]) -> None:
    for pairs in (common_subsequence(a, b), list(same_launches(a, b))):
        check(a, b, pairs)
        assert len(pairs) == longest(a, b)


@fuzzed(25)
@given(LETTERS, LETTERS)
def test_through_short_windows_it_is_still_common_and_increasing(a: list[str], b: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subsequence, "WINDOW", 4)
        patch.setattr(subsequence, "LONGEST", 8)
        check(a, b, common_subsequence(a, b))


def test_ten_thousand_on_a_side_take_seconds() -> None:
    a = [f"{i % 7}{i % 11}" for i in range(10_000)]
    b = [each for i, each in enumerate(a) if i % 9]
    began = time.process_time()
    pairs = common_subsequence(a, b)
    assert time.process_time() - began < 3.5
    assert len(pairs) > 0.95 * len(b)


def test_recordings_that_differ_throughout_pair_nothing() -> None:
    assert list(same_launches(["a", "b", "e"] * 300, ["c", "d", "e"] * 300)) == [(899, 899)]
    assert list(same_launches(["a", "b"] * 50_000, ["b", "c", "d"] * 50_000)) == []


@pytest.mark.parametrize(
    ("names", "found"),
    [("abc", [0, 1, 2]), ("abcabc", [0, 1, 2, 0, 1, 2]), ("axbc", [0, None, 1, 2]), ("ac", [0, 2]), ("", [])],
)
def test_names_find_their_place_in_the_table(names: str, found: list[int | None]) -> None:
    assert places_in_table(names, "abc", 2 if names == "abcabc" else 1) == found
